//! What the job used: CPU of the cores held, memory of its limit, GPUs where any were sampled, disks; what it ran.

use super::{
    Style,
    disk::Disk,
    facts::{Facts, Traffic},
    gpus,
    line::{Line, Tone, labelled},
    software,
};
use crate::{
    base::{
        text,
        units::{self, UNKNOWN},
    },
    model::{
        needed::MEMORY_IS_SHORT,
        tables::{Cpu, Memory},
    },
};

/// Columns of the labels.
const INDENT: usize = 8;
/// Families of the network with fewer bytes have no line.
const LEAST_TRAFFIC: u64 = 4096;
/// Rows of disks; more are counted, not shown.
const MAX_DISKS: usize = 8;

/// One or more lines for each resource.
pub fn lines(facts: &Facts, style: &Style) -> Vec<Line> {
    let mut lines = labelled("CPU", INDENT, Tone::Plain, &cpu(facts), style);
    let (tone, memory) = memory(facts);
    lines.extend(labelled("Memory", INDENT, tone, &memory, style));
    lines.extend(gpus::lines(facts, INDENT, style));
    disks(facts, style, &mut lines);
    network(facts, style, &mut lines);
    if let Some(words) = software::in_words(facts) {
        lines.extend(labelled("Ran", INDENT, Tone::Plain, &words, style));
    }
    lines
}

/// A line for each family that carried more than a word or two.
pub fn network(facts: &Facts, style: &Style, lines: &mut Vec<Line>) {
    let is_worth_it = |traffic: &&Traffic| traffic.bytes() >= LEAST_TRAFFIC;
    for (index, traffic) in facts.traffic.iter().filter(is_worth_it).enumerate() {
        let label = if index == 0 { "Network" } else { "" };
        let amount = |bytes: Option<u64>| match bytes {
            Some(bytes) => {
                let rate = units::byte_rate(bytes, facts.totals.elapsed_ns);
                format!("{} ({rate})", units::bytes(bytes))
            }
            None => UNKNOWN.to_owned(),
        };
        let (sent, received) = (amount(traffic.sent), amount(traffic.received));
        let text = format!("{} sent {sent}, received {received}", traffic.family);
        lines.extend(labelled(label, INDENT, Tone::Plain, &text, style));
        if let Some(again) = traffic.retransmits.filter(|again| *again > 0) {
            let text = format!("{} segments were sent again", units::count(again));
            lines.extend(labelled("", INDENT + 2, Tone::Warn, &text, style));
        }
    }
}

/// Cores used, of those held.
pub fn cpu(facts: &Facts) -> String {
    let cores = |millicores: Option<u64>| millicores.map_or(UNKNOWN.into(), units::cores);
    let (used, held) = (facts.used_millicores(), facts.held_millicores);
    if used.is_none() && held.is_none() {
        return UNKNOWN.to_owned();
    }
    let noun = if held == Some(1000) { "core" } else { "cores" };
    let mut out = format!("{} of {} {noun} used on average", cores(used), cores(held));
    if let (Some(used), Some(held)) = (used, held) {
        out += &format!(" ({})", units::percent(used as f64 / held as f64));
    }
    // One reading has no busier moment than its average.
    let busiest = facts.totals.peaks.millicores;
    if facts.totals.intervals > 1 && (used.is_some() || busiest > 0) {
        // A course is rounded: its busiest moment may be just below the average.
        let peak = busiest.max(used.unwrap_or(0));
        out += &format!(", {} at the busiest moment", cores(Some(peak)));
    }
    if let Some(throttled) = facts.number(Cpu::throttled_ns).filter(|ns| *ns > 0) {
        out += &format!("; held back by its CPU quota for {}", units::duration(throttled));
    }
    out
}

fn memory(facts: &Facts) -> (Tone, String) {
    let peak = facts.number(Memory::peak_bytes);
    let limit = facts.number(Memory::limit_bytes);
    let mut tone = Tone::Plain;
    let mut out = peak.map_or(UNKNOWN.into(), |peak| format!("{} at its peak", units::bytes(peak)));
    match (peak, limit) {
        (Some(_), Some(limit)) if facts.was_limit_lowered() => {
            out += &format!("; {} allowed at the end: its limit was lowered", units::bytes(limit));
        }
        (Some(_), Some(limit)) => {
            let share = facts.memory_share().unwrap_or(0.0);
            if share >= MEMORY_IS_SHORT {
                tone = Tone::Warn;
            }
            out += &format!(", {} of the {} allowed", units::percent(share), units::bytes(limit));
        }
        (None, Some(limit)) => out += &format!(", {} allowed", units::bytes(limit)),
        (Some(_), None) => out += ", no limit known",
        (None, None) => {}
    }
    if let Some(swap) = facts.number(Memory::swap_bytes).filter(|bytes| *bytes > 0) {
        out += &format!("; {} swapped out at the end", units::bytes(swap));
    }
    (tone, out)
}

/// A line for each disk and operation.
pub fn disks(facts: &Facts, style: &Style, lines: &mut Vec<Line>) {
    if facts.disks.is_empty() {
        lines.extend(labelled("Disk", INDENT, Tone::Plain, facts.no_disks(), style));
        return;
    }
    let mut shown: Vec<&Disk> = facts.disks.iter().collect();
    shown.sort_by_key(|disk| std::cmp::Reverse((disk.bytes, disk.ops)));
    let hidden = shown.len().saturating_sub(MAX_DISKS);
    shown.truncate(MAX_DISKS);
    shown.sort_by_key(|disk| facts.disks.iter().position(|other| std::ptr::eq(other, *disk)));
    let rows: Vec<_> = shown.iter().map(|disk| cells(disk, facts.totals.elapsed_ns)).collect();
    let column = |index: usize| rows.iter().map(|row| text::width(&row[index])).max().unwrap_or(0);
    let widths: [usize; 5] = std::array::from_fn(column);
    let is_table = INDENT + widths.iter().map(|width| width + 2).sum::<usize>() <= style.width + 2;
    for (index, (row, disk)) in rows.iter().zip(&shown).enumerate() {
        let label = if index == 0 { "Disk" } else { "" };
        if is_table {
            let cell = |(index, cell): (usize, &String)| match index {
                0 | 4 => text::left(cell, widths[index]) + "  ",
                _ => text::right(cell, widths[index]) + "  ",
            };
            let cells: String = row.iter().enumerate().map(cell).collect();
            lines.push(Line::new().strong(text::left(label, INDENT)).plain(cells));
        } else {
            let cells: Vec<_> = row.iter().filter(|cell| !cell.is_empty()).cloned().collect();
            lines.extend(labelled(label, INDENT, Tone::Plain, &cells.join(", "), style));
        }
        if let Some(errors) = disk.errors.filter(|errors| *errors > 0) {
            let text = format!("{} of these requests failed", units::count(errors));
            lines.extend(labelled("", INDENT + 2, Tone::Bad, &text, style));
        }
    }
    if hidden > 0 {
        let text = format!("and {hidden} smaller ones");
        lines.extend(labelled("", INDENT, Tone::Faint, &text, style));
    }
    let peak = facts.totals.peaks.disk_bytes_per_s;
    if facts.totals.intervals <= 1 || peak == 0 {
        return;
    }
    let peak = units::bytes(peak);
    let text = format!("{peak}/s at the busiest moment, all disks, reads and writes together");
    lines.extend(labelled("", INDENT, Tone::Faint, &text, style));
}

/// Name, total, average per second, requests and their mean size.
fn cells(disk: &Disk, elapsed_ns: u64) -> [String; 5] {
    let device = if disk.device.trim().is_empty() { "unnamed" } else { &disk.device };
    let name = format!("{device} {}", text::truncate(&disk.op, 7));
    let requests = format!("{} ops", disk.ops.map_or(UNKNOWN.into(), units::count));
    let mean = match (disk.bytes, disk.ops) {
        (Some(bytes), Some(ops @ 1..)) if bytes > 0 => {
            format!("averaging {}", units::bytes(bytes / ops))
        }
        _ => String::new(),
    };
    // A flush moves nothing.
    let (total, rate) = match disk.bytes {
        Some(0) => (String::new(), String::new()),
        Some(bytes) => (units::bytes(bytes), units::byte_rate(bytes, elapsed_ns)),
        None => (UNKNOWN.into(), UNKNOWN.into()),
    };
    [name, total, rate, requests, mean]
}
