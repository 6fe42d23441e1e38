//! The parts of docs/METRICS.md on where the kernel-side values come from: hooks and their families.

use std::fmt::Write;

use crate::{
    bpf::hook::{Period, Point},
    probes::{Family, HOOKS, HookRow},
};

/// One row for each hook, one for each family.
pub fn section() -> String {
    let mut text = String::from(
        "\n## Hooks and families\n\n\
         What the kernel-side values come from. `jobtrace doctor` tells which hooks this kernel has; of those with\n\
         the same group one is enough. What a missing one feeds is unknown, all else complete.\n\n\
         | program | attached to | group | family | feeds | lost without it |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in HOOKS {
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {} |",
            row.hook.program,
            point(row),
            group(row),
            row.family.row().name,
            names(row.feeds.iter().copied()),
            row.gives,
        );
    }
    text.push_str(
        "\nProbes of one family are attached, detached and unknown together. The agent estimates what they cost as\n\
         events times nanoseconds, until the kernel has measured them on the node, and sheds the costliest above its\n\
         limit (`overhead.max_ratio`); what needs another goes with it.\n\n\
         | family | counted | ns each | where that is from | shed | unknown while it is detached |\n\
         | --- | --- | ---: | --- | --- | --- |\n",
    );
    for family in Family::ALL {
        let row = family.row();
        let shed = match (row.needs, row.sheddable) {
            (Some(other), true) => format!("alone, or with {}", other.row().name),
            (Some(other), false) => format!("with {}", other.row().name),
            (None, true) => "alone".to_owned(),
            (None, false) => "never".to_owned(),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {shed} | {} |",
            row.name,
            row.event,
            row.event_ns,
            row.source,
            names(family.fields()),
        );
    }
    text
}

fn group(row: &HookRow) -> String {
    let also = row.hook.covers.map(|group| format!("; also {group}"));
    format!("{}{}", row.hook.group, also.unwrap_or_default())
}

fn point(row: &HookRow) -> String {
    let full = if row.family.row().full_only { ", `--faults full`" } else { "" };
    match row.hook.point {
        Point::Tracepoint(name, _) => format!("tracepoint `{name}`{full}"),
        Point::FunctionEntry(name) => format!("function `{name}`{full}"),
        Point::Software(event, Period::Each) => format!("each `{event:?}`{full}"),
        Point::Software(event, Period::Sampled) => format!("sampled `{event:?}`{full}"),
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "–".to_owned() } else { names.join(", ") }
}
