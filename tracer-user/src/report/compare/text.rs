//! A comparison for a terminal.

use super::{Comparison, Grown, Range, Size, laws::FORESIGHT};
use crate::{
    base::units::{cores as cores_shown, duration, fine_percent, percent},
    view::{
        MAX_WIDTH, MIN_WIDTH, Style, heading, joined,
        line::{Line, Tone, labelled},
        table::{columns_of, table},
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
    let work = match (of.weak, of.differences.is_empty()) {
        (true, _) => "work that grows with the size",
        (false, true) => "the same work",
        (false, false) => "not the same work, or not all of it (--force)",
    };
    let aside = format!("{work}: {runs} runs at {} sizes, by {}", of.sizes.len(), of.by.in_words());
    let name = if of.name.is_empty() { "Runs" } else { &of.name };
    let mut lines = heading(name, &aside, style);
    let is_queued = of.sizes.iter().any(|size| size.queued_ns.is_some());
    type Cell = fn(&Size) -> String;
    let columns: [(&str, Cell); 10] = [
        ("cores", |size| cores(size.cores)),
        ("runs", |size| size.jobs.len().to_string()),
        ("used", |size| size.cores_used.map_or(String::new(), cores)),
        ("queue", |size| size.queued_ns.map_or(String::new(), duration)),
        ("time", |size| duration(size.median_ns)),
        (SPREAD, |size| spread(size.least_ns, size.most_ns).unwrap_or_default()),
        ("speed-up", |size| format!("{:.2}", size.speed_up)),
        ("efficiency", |size| percent(size.efficiency)),
        ("serial", |size| size.serial_fraction.map_or(String::new(), serial)),
        ("10 % more", |size| size.gain_of_a_tenth.map_or(String::new(), gain)),
    ];
    let without = |left_out: &[&str]| {
        let is_shown = |(name, _): &&(&'static str, Cell)| {
            !left_out.contains(name) && (*name != "queue" || is_queued)
        };
        let columns: Vec<_> = columns.iter().filter(is_shown).collect();
        let is_short = left_out.len() > 1;
        let head = columns.iter().map(|(name, _)| match *name {
            "efficiency" if is_short => "effic.",
            name => name,
        });
        let row = |size| columns.iter().map(|(_, cell)| cell(size)).collect::<Vec<_>>();
        (head.collect::<Vec<_>>(), of.sizes.iter().map(row).collect::<Vec<_>>())
    };
    // No number is cut off: what there is no room for is told below, or elsewhere.
    let tried = LEFT_OUT.iter().map(|left_out| (without(left_out), left_out.contains(&SPREAD)));
    let fits = |((head, rows), _): &((Vec<&str>, Vec<Vec<String>>), bool)| {
        columns_of(head, rows) <= style.width
    };
    let mut tried: Vec<_> = tried.collect();
    let at = tried.iter().position(fits).unwrap_or(tried.len() - 1);
    let ((head, rows), is_below) = tried.swap_remove(at);
    lines.extend(table(&head, &rows, style));
    let spreads = of.sizes.iter().filter_map(|size| {
        Some(format!("{} on {}", spread(size.least_ns, size.most_ns)?, counted(size.cores)))
    });
    let spreads: Vec<_> = spreads.filter(|_| is_below).collect();
    if !spreads.is_empty() {
        let text = format!("{SPREAD}: {}", spreads.join("; "));
        lines.extend(labelled("", 2, Tone::Faint, &text, style));
    }
    lines
}

/// The column for which there is room last.
const SPREAD: &str = "from, to";
/// What is left out where there is no room, the first that fits.
const LEFT_OUT: [&[&str]; 4] = [
    &[],
    &[SPREAD],
    &[SPREAD, "serial", "10 % more"],
    &[SPREAD, "serial", "10 % more", "used", "queue"],
];

/// Limits of more times the speed of one core are none.
const FARTHEST: f64 = 1000.0;

fn cores(cores: f64) -> String {
    cores_shown((cores * 1000.0).round() as u64)
}

fn counted(n: f64) -> String {
    let noun = if n == 1.0 { "core" } else { "cores" };
    format!("{} {noun}", cores(n))
}

fn spread(least_ns: u64, most_ns: u64) -> Option<String> {
    (least_ns < most_ns).then(|| format!("{}, {}", duration(least_ns), duration(most_ns)))
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
            Some(range) if range.high <= smallest.cores || is_slower(of) => {
                "more cores are slower".to_owned()
            }
            Some(range) => format!(
                "fastest on {} cores, and slower on more",
                // No run was on fewer.
                between(range, |n| format!("{:.0}", n.max(smallest.cores)))
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
    said.extend(of.worth_cores.as_ref().map(|range| match is_slower(of) {
        true => {
            format!("more cores than {} are not worth it: they were slower", cores(smallest.cores))
        }
        false => worth(range, smallest.cores, furthest),
    }));
    let mut lines = vec![Line::new().strong("In short")];
    lines.extend(said.iter().flat_map(|text| labelled("  • ", 4, Tone::Plain, text, style)));
    lines
}

/// Whether each larger size was slower than the smallest.
fn is_slower(of: &Comparison) -> bool {
    of.sizes.iter().skip(1).all(|size| size.speed_up < 1.0)
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
    let past = between(range, shown);
    let noun = if past == "1" { "core" } else { "cores" };
    format!("past {past} {noun}, {WHY}")
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
