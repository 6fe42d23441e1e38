//! A table as lines of text.

use super::{Style, labels::labels, line::Line};
use crate::base::text::{left, middle, right, width};

/// Columns that the first cell of a row has at least.
const LEAST_FIRST: usize = 12;

/// Columns of the terminal that all of a table needs.
pub fn columns_of(head: &[&str], rows: &[Vec<String>]) -> usize {
    widths(head, rows).iter().map(|width| width + 2).sum()
}

fn widths(head: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let cells = |at: usize| rows.iter().map(move |row| width(&row[at])).chain([width(head[at])]);
    (0..head.len()).map(|at| cells(at).max().unwrap_or(0)).collect()
}

/// A table: cells on the right but the first; the heads are faint.
pub fn table(head: &[&str], rows: &[Vec<String>], style: &Style) -> Vec<Line> {
    let widths = widths(head, rows);
    let others: usize = widths[1..].iter().map(|width| width + 2).sum();
    let first = widths[0].min(style.width.saturating_sub(2 + others).max(LEAST_FIRST));
    let line = |label: &str, row: &[String]| {
        let rest: String =
            row[1..].iter().zip(&widths[1..]).map(|(cell, w)| right(cell, w + 2)).collect();
        format!("  {}{rest}", left(label, first))
    };
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let mut lines = vec![Line::new().faint(line(&middle(&head[0], first), &head))];
    let names: Vec<&str> = rows.iter().map(|row| &*row[0]).collect();
    let rows = labels(&names, first).into_iter().zip(rows);
    lines.extend(rows.map(|(label, row)| Line::new().plain(line(&label, row))));
    lines
}
