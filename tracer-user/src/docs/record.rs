//! docs/RECORD.md, from the tables of the record.

use std::fmt::Write;

use super::{kind, unit};
use crate::record::{
    document::SCHEMA,
    head::FIELDS,
    name::EXTENSION,
    schema::KEYS,
    series::SERIES,
    timeline::{FINENESS, FIRST_WIDTH_NS, MOST_COLUMNS},
};

/// The whole of docs/RECORD.md; the same for the same tables.
pub fn record() -> String {
    let mut text = format!(
        "# Record of a job\n\n\
         Generated from the tables beside the code by `cargo xtask docs`; do not edit.\n\n\
         A record holds what is known of one job on one node: who ran what, its exact totals with whole histograms,\n\
         and its course over time. `jobtrace run --json FILE` writes it as JSON on one line, `--save DIR` saves it\n\
         compressed with gzip, and the summary is made from it. (`--record` is something else: a recording holds every\n\
         reading, for `--replay`.)\n\n\
         This is version {SCHEMA}. Whatever is unknown is absent, never zero; within the timeline it is null. Fields may\n\
         be added without a new version, so a reader skips names that it does not know. jobtrace reads all versions up\n\
         to its own, and refuses later ones and damaged files by name. Records of one job can be merged, in any order: over\n\
         nodes, and over the parts of a job on one node that were counted apart.\n\n\
         ## Keys\n\n\
         | key | form | meaning |\n| --- | --- | --- |\n",
    );
    for key in KEYS {
        let _ = writeln!(text, "| `{}` | {} | {} |", key.path, key.form, key.help);
    }
    let _ = write!(
        text,
        "\n`job` also has the facts of `job_info`, by their names there. Each measurement is an object, or a list where\n\
         METRICS.md says so, with the fields listed there, as totals: the sums of the job's lines.\n\n\
         ## Timeline\n\n\
         At most {MOST_COLUMNS} columns. They begin {} s wide; when they no longer suffice, each two become one: counters\n\
         are added, of peaks the larger stands. A reading's amounts are spread evenly over the time since the one\n\
         before, and none is lost: a counter's columns add up to the job's total, exactly. What comes after the job's end\n\
         (write-back, a GPU's last reading) is in the last column. Single columns are rounded: they differ from what came\n\
         in their time by less than the largest column of their series on that node divided by {FINENESS}. What a counter's\n\
         column is short of is in a later one; peaks are rounded up. Each series is a list with one value per column:\n\n\
         | series | kind | unit | meaning |\n| --- | --- | --- | --- |\n",
        FIRST_WIDTH_NS / 1_000_000_000,
    );
    for series in &SERIES {
        let (kind, unit) = (kind(series.kind), unit(series.unit));
        let _ = writeln!(text, "| `{}` | {kind} | {unit} | {} |", series.name, series.help);
    }
    let _ = write!(
        text,
        "\n## Files\n\n\
         In the folder of `--save`, and in the agent's:\n\n\
         | file | holds |\n| --- | --- |\n\
         | `UID/YYYY-MM-DD/MANAGER-JOB-BEGIN@HOST{EXTENSION}` | a record: its owner (`none` if unknown), day and `timeline.begin` (ns) in UTC; ids are escaped as in URLs (`%2F`) |\n\
         | `UID/YYYY-MM-DD/heads@HOST.jsonl` | the heads of this node's records, one JSON object per line |\n\
         | `UID/tmp/` | files that are not yet whole |\n\n\
         A record is replaced as a whole whenever it is written again, so its file is always one state of it. Each\n\
         time its head is appended; of the lines with the same `file` the last one counts, and now and then the others are\n\
         removed. A file's time of modification is when its job was seen last. A record moves when its owner or another\n\
         name of the job comes to light. Damaged files and lines are named, skipped and counted; links are not followed. The fields of a head are absent if they are unknown; they combine all devices:\n\n\
         | field | type | meaning |\n| --- | --- | --- |\n"
    );
    for (name, kind, help) in FIELDS {
        let kind = if *kind == "Text" { "string" } else { "integer" };
        let _ = writeln!(text, "| `{name}` | {kind} | {} |", help.trim());
    }
    text
}
