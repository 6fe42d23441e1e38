//! A comparison for a terminal.

use super::{Comparison, Grown, Range, Size, laws::FORESIGHT};
use crate::{
    base::units::{cores as cores_shown, duration, fine_percent, percent},
    view::{
        MAX_WIDTH, MIN_WIDTH, Style, heading, joined,
        line::{Line, Tone, labelled},
        table::table,
    },
};

/// The comparison, each line ended by a line feed.
pub fn render(comparison: &Comparison, style: &Style) -> String {
    let style = Style { width: style.width.clamp(MIN_WIDTH, MAX_WIDTH), ..*style };
    let blocks = [
        sizes(comparison, &style),
        in_short(comparison, &style),
        growth(comparison, &style),
        notes(comparison, &style),
    ];
    joined(&blocks, &style)
}

fn sizes(of: &Comparison, style: &Style) -> Vec<Line> {
    let runs: usize = of.sizes.iter().map(|size| size.jobs.len()).sum();
    let work = if of.weak { "work that grows with the size" } else { "the same work" };
    let aside = format!("{work}: {runs} runs at {} sizes, by {}", of.sizes.len(), of.by.in_words());
    let name = if of.name.is_empty() { "Runs" } else { &of.name };
    let mut lines = heading(name, &aside, style);
    let is_wide = style.width >= WIDE;
    let is_queued = of.sizes.iter().any(|size| size.queued_ns.is_some());
    // The queue takes its room.
    let is_spread = is_wide && (!is_queued || style.width >= WIDEST);
    let efficiency = if is_wide { "efficiency" } else { "effic." };
    let is_shown = |name: &str| match name {
        "from, to" => is_spread,
        "queue" => is_queued,
        "serial" | "10 % more" => is_wide,
        _ => true,
    };
    type Cell = fn(&Size) -> String;
    let columns: [(&str, Cell); 10] = [
        ("cores", |size| cores(size.cores)),
        ("runs", |size| size.jobs.len().to_string()),
        ("used", |size| size.cores_used.map_or(String::new(), cores)),
        ("queue", |size| size.queued_ns.map_or(String::new(), duration)),
        ("time", |size| duration(size.median_ns)),
        ("from, to", |size| spread(size.least_ns, size.most_ns)),
        ("speed-up", |size| format!("{:.2}", size.speed_up)),
        (efficiency, |size| percent(size.efficiency)),
        ("serial", |size| size.serial_fraction.map_or(String::new(), serial)),
        ("10 % more", |size| size.gain_of_a_tenth.map_or(String::new(), gain)),
    ];
    let columns: Vec<_> = columns.iter().filter(|(name, _)| is_shown(name)).collect();
    let head: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let row = |size| columns.iter().map(|(_, cell)| cell(size)).collect();
    let rows: Vec<Vec<String>> = of.sizes.iter().map(row).collect();
    lines.extend(table(&head, &rows, style));
    lines
}

/// Limits of more times the speed of one core are none.
const FARTHEST: f64 = 1000.0;
/// From here on there is room for all columns.
const WIDE: usize = 80;
/// And for the queue too.
const WIDEST: usize = 100;

fn cores(cores: f64) -> String {
    cores_shown((cores * 1000.0).round() as u64)
}

fn counted(n: f64) -> String {
    let noun = if n == 1.0 { "core" } else { "cores" };
    format!("{} {noun}", cores(n))
}

fn spread(least_ns: u64, most_ns: u64) -> String {
    match least_ns == most_ns {
        true => String::new(),
        false => format!("{}, {}", duration(least_ns), duration(most_ns)),
    }
}

fn serial(share: f64) -> String {
    if share < 0.0 { "none".to_owned() } else { fine_percent(share) }
}

fn gain(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

/// Both ends in words, or one where they read alike.
fn between(range: &Range, show: impl Fn(f64) -> String) -> String {
    let (low, high) = (show(range.low), show(range.high));
    if low == high {
        return low;
    }
    // A unit that both have is said once.
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

fn seconds(seconds: f64) -> String {
    duration((seconds * 1e9) as u64)
}

fn in_short(of: &Comparison, style: &Style) -> Vec<Line> {
    let [smallest, .., largest] = &*of.sizes else { return Vec::new() };
    let furthest = largest.cores * FORESIGHT;
    let twice = cores(furthest);
    // Speed-ups and times are told of one and the same work.
    let held = match of.weak {
        true => format!(" for the work of {}", counted(smallest.cores)),
        false => String::new(),
    };
    let mut said = vec![format!(
        "{} cores were {:.2} times as fast as {}{held}: an efficiency of {}",
        cores(largest.cores),
        largest.speed_up,
        cores(smallest.cores),
        percent(largest.efficiency)
    )];
    if let Some(amdahl) = &of.amdahl {
        let share = &amdahl.serial_fraction;
        let (least, most) = (1.0 / share.high, 1.0 / share.low);
        let limit = if least > FARTHEST {
            String::new()
        } else if most > FARTHEST {
            format!(": the limit is {least:.1} times the speed of one core, or more")
        } else {
            let range = Range { all: least, low: least, high: most };
            let times = between(&range, |times| format!("{times:.1}"));
            format!(": the limit is {times} times the speed of one core")
        };
        said.push(format!(
            "Amdahl's law: {} of the work is serial{limit}; {twice} cores would take {}{held}",
            between(share, fine_percent),
            between(&amdahl.seconds_at_twice, seconds)
        ));
    }
    if let Some(law) = &of.scalability {
        let is_worth = of.worth_cores.as_ref().is_none_or(|range| range.gains_from(smallest.cores));
        let fastest = match &law.fastest_cores {
            Some(range) if range.high <= smallest.cores => "more cores are slower".to_owned(),
            Some(range) => format!(
                "fastest on {} cores, and slower on more",
                between(range, |n| format!("{n:.0}"))
            ),
            None if !is_worth => "more cores are hardly faster, if at all".to_owned(),
            None => format!("more cores are faster up to {twice} at least"),
        };
        said.push(format!(
            "universal scalability law: contention {}, coherency {}: {fastest}; {twice} cores would take {}{held}",
            between(&law.contention, fine_percent),
            between(&law.coherency, fine_percent),
            between(&law.seconds_at_twice, seconds)
        ));
    }
    said.extend(queue(of));
    said.extend(of.worth_cores.as_ref().map(|range| worth(range, smallest.cores, furthest)));
    let mut lines = vec![Line::new().strong("In short")];
    lines.extend(said.iter().flat_map(|text| labelled("  • ", 4, Tone::Plain, text, style)));
    lines
}

/// Where the fastest size was not the first to be done: what it gained it had waited longer.
fn queue(of: &Comparison) -> Option<String> {
    let waits: Vec<u64> = of.sizes.iter().map(|size| size.queued_ns).collect::<Option<_>>()?;
    let both = || of.sizes.iter().zip(waits.iter().copied());
    let done = |(size, wait): &(&Size, u64)| size.median_ns.saturating_add(*wait);
    let fastest = both().min_by_key(|(size, _)| size.median_ns)?;
    let first = both().min_by_key(done)?;
    let spent = |(size, wait): (&Size, u64)| {
        format!("{} in the queue and {} running", duration(wait), duration(size.median_ns))
    };
    (done(&first) < done(&fastest)).then(|| {
        format!(
            "{} cores were the fastest but not the first to be done: {}; {} cores: {}",
            cores(fastest.0.cores),
            spent(fastest),
            cores(first.0.cores),
            spent(first)
        )
    })
}

/// Up to how many cores more are worth it.
fn worth(range: &Range, least: f64, furthest: f64) -> String {
    const WHY: &str = "10 % more cores make it less than 5 % faster";
    let reaches = |cores: f64| cores >= furthest * 0.999;
    if reaches(range.low) {
        return format!(
            "up to {} cores at least, 10 % more cores make it 5 % faster or more",
            cores(furthest)
        );
    }
    if !range.gains_from(least) {
        return format!("more cores than {} are not worth it: {WHY}", cores(least));
    }
    let shown = |n: f64| {
        if reaches(n) { format!("{} or more", cores(furthest)) } else { format!("{n:.0}") }
    };
    format!("past {} cores, {WHY}", between(range, shown))
}

fn growth(of: &Comparison, style: &Style) -> Vec<Line> {
    let (Some(growth), [smallest, .., largest]) = (&of.growth, &*of.sizes) else {
        return Vec::new();
    };
    let (from, to) = (cores(smallest.cores), cores(largest.cores));
    let aside = match of.weak {
        true => format!("from {from} to {to} cores, for the work of {from}"),
        false => format!("from {from} to {to} cores"),
    };
    let mut lines = heading("What took more time", &aside, style);
    let time = |sign: &str, ns: f64| match ns as u64 {
        0 => "none".to_owned(),
        ns => sign.to_owned() + &duration(ns),
    };
    let row = |name: &str, grown: &Grown| {
        let sign = if grown.more_ns() < 0.0 { "-" } else { "+" };
        let more = time(sign, grown.more_ns().abs());
        vec![name.to_owned(), time("", grown.from_ns), time("", grown.to_ns), more]
    };
    let mut rows = vec![row("core time held", &growth.held)];
    rows.extend(growth.on_cpu.as_ref().map(|grown| row("  of it on CPU", grown)));
    rows.extend(growth.waits.iter().map(|grown| row(&grown.what, grown)));
    lines.extend(table(&["", &from, &to, "more"], &rows, style));
    if growth.waits.is_empty() {
        lines.push(Line::new().faint("  no cause of waiting is known to have grown"));
    } else {
        let aside = "  waits are those of all tasks, idle helpers and waiting parents included";
        lines.push(Line::new().faint(aside));
    }
    lines
}

fn notes(of: &Comparison, style: &Style) -> Vec<Line> {
    let mut lines = Vec::new();
    for text in &of.differences {
        lines.extend(labelled("Not the same  ", 14, Tone::Warn, text, style));
    }
    for (at, text) in of.notes.iter().enumerate() {
        let label = if at == 0 { "Note  " } else { "" };
        lines.extend(labelled(label, 6, Tone::Faint, text, style));
    }
    lines
}
