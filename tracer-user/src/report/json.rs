//! A report as JSON: what it says, and the record of the whole job below `record`.

use anyhow::{Context, Result};
use serde::Serialize;

use super::{Report, Whole};
use crate::record::document::document;

/// Each of `rows` on a line of its own.
///
/// # Errors
/// None that its input could cause.
pub fn lines<T: Serialize>(rows: &[T]) -> Result<String> {
    let line = |row| Ok(serde_json::to_string(row).context("cannot write a row as json")? + "\n");
    rows.iter().map(line).collect()
}

/// The document on one line, line feed included.
///
/// # Errors
/// None that its input could cause.
pub fn json(whole: &Whole, report: &Report) -> Result<String> {
    #[derive(Serialize)]
    struct Document<'a> {
        #[serde(flatten)]
        report: &'a Report,
        record: serde_json::Value,
    }
    let record = document(&whole.record)?;
    let record = serde_json::from_str(&record).context("cannot write a report as json")?;
    let document = Document { report, record };
    Ok(serde_json::to_string(&document).context("cannot write a report as json")? + "\n")
}
