//! docs/FINDINGS.md: the table of rules.

use std::fmt::Write;

use crate::{
    base::units::duration,
    view::rules::{LEAST_NS, OTHERWISE, RULES},
};

const INTRODUCTION: &str = "\
# Findings

Generated from the table beside the code by `cargo xtask docs`; do not edit.

What `jobtrace run` says under \"In short\" and `jobtrace report` under \"What stands out, and what to change\". The
summary shows the three with the largest share of the time, the report at most five: first what went wrong, then by
what they would save. A GPU hour counts as 16 core hours there, and memory as the part of the node that it is. A rule
is silent about jobs shorter than stated and where it lacks a value. `report --json` has the name as `rule`. Each has
a really traced job that it speaks of, and one that it is silent about, in a file of `tests/tests/live_findings`.

| rule | speaks when | from | threshold taken from | advice | shown in |
| --- | --- | --- | --- | --- | --- |
";

/// The whole of it.
pub fn findings() -> String {
    let mut text = INTRODUCTION.to_owned();
    for rule in RULES {
        let least = match rule.least_ns {
            0 => "0".to_owned(),
            ns => duration(ns),
        };
        let (when, source) = ((rule.threshold)(), rule.source);
        let _ = writeln!(
            text,
            "| `{}` | {when} | {least} | {source} | {} | `{}.rs` |",
            rule.id, rule.advice, rule.shown
        );
    }
    let [nothing, too_short] = OTHERWISE;
    let least = duration(LEAST_NS);
    text + &format!(
        "\nWhere no rule speaks, `report --json` has the name `{nothing}`, and for a job of less than {least} \
         `{too_short}`: without advice.\n"
    )
}
