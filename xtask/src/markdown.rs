//! Tables and figures as the documents have them.

use std::fmt::{self, Display, Write};

/// A table, row by row.
pub struct Table(String);

impl Table {
    /// One with these headings, `workload | >runs`; a `>` puts a column's text to the right.
    pub fn new(headings: &str) -> Self {
        let (mut names, mut rules) = (String::from("|"), String::from("|"));
        for heading in headings.split(" | ") {
            let rule = if heading.starts_with('>') { " ---: |" } else { " --- |" };
            rules.push_str(rule);
            let _ = write!(names, " {} |", heading.trim_start_matches('>'));
        }
        Self(format!("{names}\n{rules}\n"))
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [&dyn Display; N]) {
        self.cells(cells);
    }

    /// Adds a row of any number of cells.
    pub fn cells(&mut self, cells: impl IntoIterator<Item = impl Display>) {
        self.0.push('|');
        for cell in cells {
            let _ = write!(self.0, " {cell} |");
        }
        self.0.push('\n');
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A figure in a unit, or a dash where there is none.
pub fn or_dash<T>(figure: Option<T>, show: impl FnOnce(T) -> String) -> String {
    figure.map_or("–".to_owned(), show)
}

/// Bytes in MiB, without the unit.
pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// With a comma before every three digits.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_a_rule_for_each_column() {
        let mut table = Table::new("name | >count");
        table.row([&"a", &7]);
        assert_eq!(table.to_string(), "| name | count |\n| --- | ---: |\n| a | 7 |\n");
    }

    #[test]
    fn numbers_are_readable() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
        assert_eq!(or_dash(None, |n: u64| n.to_string()), "–");
    }
}
