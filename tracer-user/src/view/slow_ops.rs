//! The operations on files that took longest, where a run was asked for them: each with its file, its place in it, its
//! thread, and when.

use serde::Serialize;

use super::{
    Style,
    facts::Facts,
    file_ops::place,
    heading,
    line::Line,
    table::{columns_of, table},
};
use crate::{
    base::{
        text::clean,
        units::{bytes, duration, long_duration},
    },
    model::slow_ops::SlowOp,
};

/// Operations that a summary and a text have room for.
const MOST: usize = 3;
const MOST_OF_TEXT: usize = 10;
/// The summary names those that took this part of the run, or this long.
const LEAST: f64 = 0.01;
const LEAST_NS: u64 = 1_000_000_000;
/// Columns of the terminal that the first cell has before others make room for it.
const FIRST: usize = 24;

/// An operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowRow {
    /// `fsync /scratch/log`, made harmless as all texts.
    pub name: String,
    /// How long it took.
    pub took_ns: u64,
    /// When it began, after the job began to be counted; absent: that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_ns: Option<u64>,
    /// Whether the thread gave its CPU away.
    pub waited: bool,
    /// Whether it had not returned.
    pub under_way: bool,
    /// Bytes that it moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Where in the file it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// How it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its thread: `python3 4711`, of several nodes `python3 4711 on n1`.
    pub by: String,
}

/// Heads of the columns.
pub const HEAD: [&str; 7] = ["", "took", "began after", "waited", "moved", "at", "thread"];
/// What is said of them.
pub const OF_SLOWEST: &str = "which took longest, each by itself";

impl SlowRow {
    /// Those of a run, the longest first; none where it was not asked for them.
    pub fn all(facts: &Facts) -> Vec<Self> {
        let slowest = facts.totals.files.slowest.iter();
        slowest.map(|op| Self::of(op, facts.begin_ns, facts.unicode)).collect()
    }

    fn of(op: &SlowOp, counted_from_ns: u64, unicode: bool) -> Self {
        let host = |host: &str| format!(" on {}", clean(host, unicode));
        let of_host = Some(&*op.host).filter(|host| !host.is_empty()).map_or(String::new(), host);
        let on = match &*op.path {
            "" => place(&op.fs, &op.mount, unicode),
            path => clean(path, unicode),
        };
        Self {
            name: format!("{} {on}", clean(&op.op, unicode)),
            took_ns: op.took_ns,
            after_ns: (counted_from_ns != 0).then(|| op.begin.saturating_sub(counted_from_ns)),
            waited: op.waited,
            under_way: op.under_way,
            bytes: op.bytes,
            offset: op.offset,
            error: op.error.as_deref().map(|error| clean(error, unicode)),
            by: format!("{} {}{of_host}", clean(&op.program, unicode), op.thread),
        }
    }

    /// As in [`HEAD`].
    pub fn cells(&self) -> Vec<String> {
        let under_way = self.under_way.then(|| "under way".to_owned());
        let moved = under_way.or(self.error.clone()).or_else(|| self.bytes.map(bytes));
        vec![
            self.name.clone(),
            if self.under_way {
                format!("over {}", duration(self.took_ns))
            } else {
                duration(self.took_ns)
            },
            self.after_ns.map_or(String::new(), long_duration),
            if self.waited { "yes" } else { "no" }.to_owned(),
            moved.unwrap_or_default(),
            self.offset.map_or(String::new(), bytes),
            self.by.clone(),
        ]
    }
}

/// The block of the summary: those that matter to how long the run took.
pub fn lines(facts: &Facts, style: &Style) -> Vec<Line> {
    let least_ns = LEAST_NS.min((facts.totals.elapsed_ns as f64 * LEAST) as u64);
    let mut rows = SlowRow::all(facts);
    rows.retain(|row| row.took_ns >= least_ns);
    rows.truncate(MOST);
    block(&rows, style)
}

/// The block of a terminal's text; nothing where no operation is known.
pub fn block(rows: &[SlowRow], style: &Style) -> Vec<Line> {
    if rows.is_empty() {
        return Vec::new();
    }
    let cells: Vec<_> = rows.iter().take(MOST_OF_TEXT).map(SlowRow::cells).collect();
    let mut lines = heading("Slowest operations", OF_SLOWEST, style);
    // What a name leaves no room for goes first.
    for left_out in [&[][..], &[3], &[3, 5], &[3, 5, 6], &[2, 3, 4, 5, 6]] {
        let without = |cells: &[String]| -> Vec<String> {
            let kept = cells.iter().enumerate().filter(|(at, _)| !left_out.contains(at));
            kept.map(|(_, cell)| cell.clone()).collect()
        };
        let head = without(&HEAD.map(str::to_owned));
        let head: Vec<_> = head.iter().map(String::as_str).collect();
        let cells: Vec<_> = cells.iter().map(|cells| without(cells)).collect();
        let rest: Vec<Vec<String>> = cells.iter().map(|row| row[1..].to_vec()).collect();
        if columns_of(&head[1..], &rest) + FIRST + 2 <= style.width || left_out.len() == 5 {
            lines.extend(table(&head, &cells, style));
            break;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_told_with_all_that_is_known_of_it() {
        let op = SlowOp {
            begin: 7_000_000_000,
            took_ns: 250_000_000,
            waited: true,
            op: "read".into(),
            path: "/d/\x1b[31ma".into(),
            bytes: Some(4096),
            offset: Some(8192),
            program: "a\nb".into(),
            thread: 12,
            host: "n1".into(),
            ..SlowOp::default()
        };
        let row = SlowRow::of(&op, 4_000_000_000, false);
        let cells = row.cells();
        assert_eq!(cells[1..6], ["250 ms", "3.00 s", "yes", "4 KiB", "8 KiB"], "{cells:?}");
        assert!(!cells.concat().contains(['\x1b', '\n']), "{cells:?}");
        assert!(cells[6].ends_with("12 on n1"), "{cells:?}");
        let failed = SlowOp {
            path: String::new(),
            fs: "nfs".into(),
            mount: "/home".into(),
            error: Some("ESTALE".into()),
            bytes: None,
            ..op
        };
        let row = SlowRow::of(&failed, 0, false);
        assert_eq!((&*row.name, row.after_ns), ("read /home (nfs)", None));
        assert_eq!(row.cells()[4], "ESTALE");
        let hangs = SlowOp { under_way: true, error: None, ..failed };
        let cells = SlowRow::of(&hangs, 0, false).cells();
        assert_eq!([&*cells[1], &cells[4]], ["over 250 ms", "under way"]);
    }
}
