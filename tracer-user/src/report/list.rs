//! Lists side by side: as columns on a terminal, as CSV for spreadsheets and programs.
//!
//! Pure, and knows no list: a list says what its columns are.

use crate::{
    base::text,
    view::{
        Style,
        line::{Line, Tone},
    },
};

/// A column of CSV: its name, never renamed, and its cell of a row; what is unknown is empty.
pub(super) type Column<Row> = (&'static str, fn(&Row) -> String);

/// Rows as CSV (RFC 4180), with a line of names.
pub(super) fn csv<Row>(columns: &[Column<Row>], rows: &[Row]) -> String {
    let head: Vec<_> = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    let cells = |row: &Row| columns.iter().map(|(_, of)| of(row)).collect::<Vec<_>>();
    std::iter::once(head).chain(rows.iter().map(cells)).map(|cells| csv_line(&cells)).collect()
}

/// The cell of a number that may be unknown.
pub(super) fn number(number: Option<u64>) -> String {
    number.map_or(String::new(), |number| number.to_string())
}

/// A line of CSV, line feed included. A text that a spreadsheet would compute is made one that it does not, and none
/// tells a terminal what to do.
fn csv_line(cells: &[String]) -> String {
    let cell = |cell: &String| {
        let is_order = |c: char| c.is_control() && c != '\n';
        let cell = cell.replace(is_order, "?");
        let is_formula = cell.starts_with(['=', '+', '-', '@']);
        let text = if is_formula { format!("'{cell}") } else { cell };
        if text.contains([',', '"', '\n']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text
        }
    };
    cells.iter().map(cell).collect::<Vec<_>>().join(",") + "\n"
}

/// A table for a terminal; the columns at `right` are numbers. As wide as it is: a pipe has no width.
pub(super) fn columns(
    head: &[&str],
    rows: &[Vec<String>],
    right: &[usize],
    style: &Style,
) -> String {
    let cells =
        |at: usize| rows.iter().map(move |row| text::width(&row[at])).chain([head[at].len()]);
    let widths: Vec<usize> = (0..head.len()).map(|at| cells(at).max().unwrap_or(0)).collect();
    let style = Style { width: usize::MAX, ..*style };
    let line = |row: &[String], tone| {
        let cell = |(at, cell): (usize, &String)| match right.contains(&at) {
            true => text::right(cell, widths[at]),
            false => text::left(cell, widths[at]),
        };
        let cells: Vec<_> = row.iter().enumerate().map(cell).collect();
        Line::new().with(tone, cells.join("  ")).render(&style) + "\n"
    };
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rows = rows.iter().map(|row| line(row, Tone::Plain));
    std::iter::once(line(&head, Tone::Faint)).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_is_read_back_as_it_was_and_computes_nothing() {
        let cells = ["a,b", "say \"x\"", "two\nlines", "=1+1", "\x1b[2Jplain\r", ""];
        let cells = cells.map(str::to_owned);
        let expected = "\"a,b\",\"say \"\"x\"\"\",\"two\nlines\",'=1+1,?[2Jplain?,\n";
        assert_eq!(csv_line(&cells), expected);
        let columns: [Column<Option<u64>>; 2] =
            [("a", |row| number(*row)), ("b", |_| "x,y".into())];
        assert_eq!(csv(&columns, &[None, Some(5)]), "a,b\n,\"x,y\"\n5,\"x,y\"\n");
    }

    #[test]
    fn numbers_are_on_the_right_of_columns_as_wide_as_their_widest_cell() {
        let rows = [["ada", "5"], ["計算", "1234"]].map(|row| row.map(str::to_owned).to_vec());
        let style = Style { width: 10, color: false, unicode: true };
        let expected = "WHO    N H\nada      5\n計算  1234\n";
        assert_eq!(columns(&["WHO", "N H"], &rows, &[1], &style), expected);
    }
}
