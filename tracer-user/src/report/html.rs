//! A report as one HTML page: no script, nothing loaded, light, dark and for print. askama escapes every text; drawings
//! are SVG of our own, each with a title in words.

mod drawing;

use anyhow::{Context, Result};
use askama::Template;

use self::drawing::{Heat, TrackShape};
use super::{Bar, Report, Who, Whole, text::tables, used::shown};
use crate::{
    base::units::long_duration,
    view::{files, line::Tone},
};

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    report: &'a Report,
    who: &'a Who,
    took: String,
    span: String,
    /// Times after the begin, at equal distances along the course.
    axis: Vec<String>,
    tracks: Vec<TrackShape>,
    heat: Option<Heat>,
    nodes: Vec<Vec<String>>,
    parts: Vec<Vec<String>>,
    devices: Vec<Vec<String>>,
    more_devices: Option<String>,
    io: Vec<Vec<String>>,
    /// Title, head of the first column, words on it, and rows of each table of files.
    files: [(&'static str, &'static str, &'static str, Vec<Vec<String>>); 2],
    file_head: &'static [&'static str],
    version: &'static str,
}

/// The page of `report`, which is of `whole`.
///
/// # Errors
/// None that its input could cause.
pub fn html(whole: &Whole, report: &Report) -> Result<String> {
    let course = &report.course;
    let span_ns = course.end.saturating_sub(course.begin);
    let page = Page {
        report,
        who: &report.who,
        took: long_duration(report.who.elapsed_ns),
        span: long_duration(span_ns),
        axis: (0..=MARKS).map(|mark| mark_words(span_ns, mark)).collect(),
        tracks: course.tracks.iter().map(TrackShape::of).collect(),
        heat: Heat::of(whole),
        nodes: report.nodes.iter().map(tables::node_cells).collect(),
        parts: report.parts.iter().map(tables::part_cells).collect(),
        devices: report.devices.iter().map(tables::device_cells).collect(),
        more_devices: tables::more_devices(report),
        io: report.io.cells(),
        files: [
            ("Files", "File", files::OF_FILES, report.files.cells()),
            ("Folders", "Folder", files::OF_FOLDERS, report.files.folder_cells()),
        ],
        file_head: &files::HEAD[1..],
        version: env!("CARGO_PKG_VERSION"),
    };
    page.render().context("cannot write a report as html")
}

/// Marks along the course, its begin not counted.
const MARKS: u64 = 4;

fn mark_words(span_ns: u64, mark: u64) -> String {
    match mark {
        0 => "0".to_owned(),
        _ => long_duration((u128::from(span_ns) * u128::from(mark) / u128::from(MARKS)) as u64),
    }
}

impl Bar {
    /// Its width in percent, at least a sliver.
    fn width(&self) -> Option<String> {
        let share = self.share.filter(|share| *share > 0.0)?;
        Some(format!("{:.1}", (share * 100.0).clamp(0.5, 100.0)))
    }

    fn percent(&self) -> String {
        shown(self.share)
    }
}

impl Tone {
    /// Its class in the page's style.
    fn name(self) -> &'static str {
        match self {
            Self::Plain | Self::Strong => "plain",
            Self::Faint => "faint",
            Self::Good => "good",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}
