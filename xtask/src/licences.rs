//! `cargo xtask licences`: every dependency's licence against those that deny.toml allows. Reads what
//! cargo knows already, so it works without a network. `cargo deny check` reads the same list, and more;
//! to compile it takes longer than all of the tests.

use std::{collections::BTreeMap, fs};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use spdx::{Expression, ParseMode};
use xtask::root;

use crate::process::{cargo, output, run as run_command, say};

/// What we read of deny.toml.
#[derive(Deserialize)]
struct Deny {
    licenses: Licences,
}

#[derive(Deserialize)]
struct Licences {
    allow: Vec<String>,
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

/// Licences that may reach users, alone or as one side of an `OR`.
struct Allowed {
    all: Vec<String>,
    /// Besides those, by package.
    exceptions: BTreeMap<String, Vec<String>>,
}

impl Allowed {
    fn read() -> Result<Self> {
        let path = root().join("deny.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let Deny { licenses } = toml::from_str(&text).context("read deny.toml")?;
        let by_name = |it: Exception| (it.name, it.allow);
        let exceptions = licenses.exceptions.into_iter().map(by_name).collect();
        Ok(Self { all: licenses.allow, exceptions })
    }

    fn has(&self, package: &str, licence: &str) -> bool {
        let own = self.exceptions.get(package).into_iter().flatten();
        self.all.iter().chain(own).any(|allowed| allowed == licence)
    }
}

/// Runs the chore.
///
/// # Errors
/// Names each package whose licence is not allowed or not stated.
pub fn run() -> Result<()> {
    let allowed = Allowed::read()?;
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().context("cargo's metadata has no packages")?;
    let refused: Vec<String> = packages
        .iter()
        .filter_map(|package| {
            let name = text(&package["name"]);
            let is_allowed = |licence: &str| allowed.has(name, licence);
            let reason = refusal(package["license"].as_str(), is_allowed).err()?;
            Some(format!("{name} {}: {reason:#}", text(&package["version"])))
        })
        .collect();
    if !refused.is_empty() {
        bail!(
            "replace these packages or extend the list in deny.toml:\n  {}",
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

/// Fails when the expression cannot be met with allowed licences. `MIT/Apache-2.0`, the old way
/// to write `OR`, is still found in the registry.
fn refusal(expression: Option<&str>, is_allowed: impl Fn(&str) -> bool) -> Result<()> {
    let expression = expression.context("states no licence expression")?;
    let mode = ParseMode { allow_slash_as_or_operator: true, ..ParseMode::STRICT };
    let parsed = Expression::parse_mode(expression, mode)
        .map_err(|error| anyhow::anyhow!("`{expression}` is no licence expression: {error}"))?;
    let met = parsed.evaluate(|licence| {
        // An exception (`WITH`) only ever grants more than its licence.
        licence.license.id().is_some_and(|id| is_allowed(id.name))
    });
    if !met {
        bail!("`{expression}` is not allowed");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let is_allowed = |licence: &str| ["Apache-2.0", "MIT", "Unicode-3.0"].contains(&licence);
        for (expression, allowed) in cases {
            assert_eq!(refusal(Some(expression), is_allowed).is_ok(), allowed, "{expression}");
        }
        assert!(refusal(None, is_allowed).is_err());
    }

    #[test]
    fn our_kernel_side_alone_may_be_under_the_kernels_licence() {
        let allowed = Allowed::read().expect("deny.toml is there");
        let gpl = "GPL-2.0-only";
        assert!(allowed.has("tracer-ebpf", gpl) && allowed.has("tracer-ebpf", "MIT"));
        assert!(allowed.has("anyhow", "MIT") && !allowed.has("anyhow", gpl));
    }
}
