//! `cargo xtask licences`: every dependency's licence against the allowed ones. Reads what cargo
//! knows already, so it works without a network; deny.toml says the same to cargo-deny.

use crate::process::{cargo, output, run as run_command, say};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use spdx::{Expression, ParseMode};

/// Licences that may reach users, alone or as one side of an `OR`.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Our own programs for the kernel, which demands GPL-2.0 of them.
const OWN: &[&str] = &["tracer-ebpf"];

/// Runs the chore.
///
/// # Errors
/// Names each package whose licence is not allowed or not stated.
pub fn run() -> Result<()> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().context("cargo's metadata has no packages")?;
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !is_own(package))
        .filter_map(|package| {
            let reason = refusal(package["license"].as_str()).err()?;
            Some(format!("{} {}: {reason:#}", text(&package["name"]), text(&package["version"])))
        })
        .collect();
    if !refused.is_empty() {
        bail!(
            "replace these packages or extend the list in deny.toml and xtask/src/licences.rs:\n  {}",
            refused.join("\n  ")
        );
    }
    say(format_args!("the licences of {} packages are allowed", packages.len()));
    Ok(())
}

/// The dependency graph; other platforms' packages count too, and are fetched where none built them.
fn metadata() -> Result<Value> {
    let read =
        || output(cargo().args(["metadata", "--format-version", "1", "--offline", "--locked"]));
    let text = match read() {
        Ok(text) => text,
        Err(_) => {
            say("that needs every package's manifest: fetching them");
            run_command(cargo().args(["fetch", "--locked"]))?;
            read()?
        }
    };
    serde_json::from_str(&text).context("read cargo's metadata")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

fn is_own(package: &Value) -> bool {
    package["source"].is_null() && OWN.contains(&text(&package["name"]))
}

/// Fails when the expression cannot be met with allowed licences. `MIT/Apache-2.0`, the old way
/// to write `OR`, is still found in the registry.
fn refusal(expression: Option<&str>) -> Result<()> {
    let expression = expression.context("states no licence expression")?;
    let mode = ParseMode { allow_slash_as_or_operator: true, ..ParseMode::STRICT };
    let parsed = Expression::parse_mode(expression, mode)
        .map_err(|error| anyhow::anyhow!("`{expression}` is no licence expression: {error}"))?;
    let met = parsed.evaluate(|licence| {
        // An exception (`WITH`) only ever grants more than its licence.
        licence.license.id().is_some_and(|id| ALLOWED.contains(&id.name))
    });
    if !met {
        bail!("`{expression}` is not allowed");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask::root;

    #[test]
    fn alternatives_conjunctions_and_old_spellings() {
        let cases = [
            ("MIT", true),
            ("MIT OR Apache-2.0", true),
            ("MIT/Apache-2.0", true),
            ("(MIT OR GPL-3.0-only) AND Unicode-3.0", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("LGPL-2.1-only OR MIT", true),
            ("MIT AND GPL-2.0-only", false),
            ("LGPL-2.1-only", false),
            ("Whatever", false),
        ];
        for (expression, allowed) in cases {
            assert_eq!(refusal(Some(expression)).is_ok(), allowed, "{expression}");
        }
        assert!(refusal(None).is_err());
    }

    #[test]
    fn deny_toml_allows_the_same_licences() {
        let text = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml is there");
        let list = text.split("allow = [").nth(1).and_then(|rest| rest.split(']').next());
        let named: Vec<&str> = list
            .expect("deny.toml has a list `allow`")
            .split(',')
            .map(|item| item.trim().trim_matches('"'))
            .filter(|item| !item.is_empty())
            .collect();
        assert_eq!(named, ALLOWED);
    }
}
