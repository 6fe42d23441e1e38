//! `jobtrace doctor`: what this node supports, what is missing and how to get it.

mod checks;
mod gpu;

use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;

use crate::base::{open_files::OpenFiles, say::print, text::clean};

/// Report what this node supports, what is missing and how to get it.
///
/// The exit status is 1 if `jobtrace run` would not work here and now.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  As the user who will trace:
      sudo jobtrace doctor
  For a script:
      jobtrace doctor --json | jq '.[] | select(.state == \"missing\")'")]
pub struct Args {
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
    /// Look for AMD, Intel and other GPUs in DIR/sys and DIR/proc: for containers in which the host's
    /// are mounted there, and for tests
    #[arg(long, default_value = "/", hide_default_value = true, value_name = "DIR")]
    pub sysfs_root: PathBuf,
}

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Works.
    Ok,
    /// Absent, and only its own values with it.
    Missing,
    /// `jobtrace run` does not work without it.
    Fatal,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub subject: String,
    /// How it came out.
    pub state: Severity,
    /// What was found, or what is lost and why.
    pub detail: String,
    /// How to get it, where it is missing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cure: String,
}

impl Finding {
    fn new(
        subject: &str,
        state: Severity,
        detail: impl Into<String>,
        cure: impl Into<String>,
    ) -> Self {
        Self { subject: subject.into(), state, detail: detail.into(), cure: cure.into() }
    }

    fn ok(subject: &str, detail: impl Into<String>) -> Self {
        Self::new(subject, Severity::Ok, detail, "")
    }
}

/// Looks, prints, and gives the exit status: 1 where `jobtrace run` would not work.
///
/// # Errors
/// When the findings cannot be printed.
pub fn run(args: &Args) -> Result<u8> {
    // As `run` does: the probes are tried with what it would have.
    OpenFiles::raise();
    let findings = checks::all(&args.sysfs_root);
    let text =
        if args.json { serde_json::to_string_pretty(&findings)? + "\n" } else { table(&findings) };
    print(&text)?;
    Ok(u8::from(findings.iter().any(|finding| finding.state == Severity::Fatal)))
}

fn table(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.subject.len()).max().unwrap_or(0);
    let mut text = String::new();
    for finding in findings {
        let state = match finding.state {
            Severity::Ok => "ok     ",
            Severity::Missing => "missing",
            Severity::Fatal => "FATAL  ",
        };
        // Of several reasons each has a line.
        let lines = finding.detail.lines().map(|line| clean(line, true));
        let detail = Vec::from_iter(lines).join(&format!("\n{:1$}", "", width + 11));
        text += &format!("{state}  {:width$}  {detail}\n", finding.subject);
        if !finding.cure.is_empty() {
            text += &format!("{:7}  {:width$}  -> {}\n", "", "", finding.cure);
        }
    }
    let fatal = findings.iter().filter(|finding| finding.state == Severity::Fatal).count();
    let missing = findings.iter().filter(|finding| finding.state == Severity::Missing).count();
    text + &match (fatal, missing) {
        (0, 0) => "\njobtrace run works here, and nothing is missing.\n".to_owned(),
        (0, 1) => "\njobtrace run works here; 1 thing is missing.\n".to_owned(),
        (0, _) => format!("\njobtrace run works here; {missing} things are missing.\n"),
        _ => "\njobtrace run does not work here.\n".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_the_cure_and_the_verdict() {
        let mut findings = vec![Finding::ok("kernel", "6.1.0")];
        assert!(table(&findings).ends_with("and nothing is missing.\n"));
        findings.push(Finding::new("hook", Severity::Missing, "no hook", "nothing to do"));
        assert!(table(&findings).ends_with("works here; 1 thing is missing.\n"));
        findings.push(Finding::new("types", Severity::Fatal, "no file", "boot another kernel"));
        let text = table(&findings);
        assert!(text.contains("FATAL    types   no file\n"), "{text}");
        assert!(text.contains("-> boot another kernel\n"), "{text}");
        assert!(text.ends_with("does not work here.\n"), "{text}");
    }
}
