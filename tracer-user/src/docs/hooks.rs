//! The parts of docs/METRICS.md on where the kernel-side values come from: hooks and their families.

use std::fmt::Write;

use aya::programs::perf_event::SoftwareEvent;

use crate::{
    bpf::hook::{Period, Point},
    probes::{CAUSES, Family, HOOKS, HookRow},
};

/// One row for each hook, one for each family.
pub fn section() -> String {
    let mut text = String::from(
        "\n## Hooks and families\n\n\
         The BPF programs behind the values above. `jobtrace doctor` shows which hooks a kernel has; of the hooks in\n\
         one group, one is enough. The fields that a missing hook feeds are unknown, all others are complete.\n\n\
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
        "\nThe probes of a family are attached and detached together. Until the kernel has measured their cost on the\n\
         node, the agent estimates it as events times nanoseconds. Above its limit (`overhead.max_ratio`) it detaches\n\
         (sheds) the costliest family, and with it those that depend on it.\n\n\
         | family | events | ns each | source of that figure | shed | unknown while detached |\n\
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
    let others = row.hook.covers.iter().filter(|group| **group != row.hook.group);
    let also: String = others.map(|group| format!("; also {group}")).collect();
    format!("{}{also}", row.hook.group)
}

fn point(row: &HookRow) -> String {
    let full = if row.family.row().full_only { ", `--faults full`" } else { "" };
    match row.hook.point {
        Point::Tracepoint(name, _) => format!("tracepoint `{name}`{full}"),
        Point::FunctionEntry(name) => format!("function `{name}`{full}"),
        Point::FunctionExit(name, _) => format!("return of function `{name}`{full}"),
        Point::Event(group, name) => format!("event `{group}:{name}`{full}"),
        Point::Software(event, Period::Each) => format!("{}, each{full}", software(event)),
        Point::Software(event, Period::Sampled) => format!("{}, sampled{full}", software(event)),
    }
}

/// The event as `perf list` calls it.
fn software(event: SoftwareEvent) -> &'static str {
    match event {
        SoftwareEvent::PageFaultsMaj => "perf event `major-faults`",
        SoftwareEvent::PageFaultsMin => "perf event `minor-faults`",
        _ => "perf event",
    }
}

/// The names; the causes of waits, which go together, by one word.
fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let (causes, names): (Vec<_>, Vec<_>) = names.partition(|name| CAUSES.contains(name));
    let names = names.into_iter().map(|name| format!("`{name}`"));
    let causes = (!causes.is_empty()).then(|| "the causes of sleeps and blocks".to_owned());
    let names: Vec<_> = names.chain(causes).collect();
    if names.is_empty() { "–".to_owned() } else { names.join(", ") }
}
