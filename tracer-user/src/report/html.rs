//! A report as one HTML page: no script, nothing loaded, light, dark and for print. askama escapes every text; drawings
//! are SVG of our own, each with a title in words.

mod drawing;
mod latency;

use anyhow::{Context, Result};
use askama::Template;

use self::{
    drawing::{Heat, TrackShape},
    latency::LatencyMap,
};
use super::{Bar, Report, Who, Whole, text::tables, used::shown};
use crate::{
    base::units::long_duration,
    view::{
        files, io_threads,
        line::Tone,
        slow_ops::{self, SlowRow},
    },
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
    latency: Option<LatencyMap>,
    /// What is told of operations beside their totals.
    tables: Vec<IoTable<'a>>,
    version: &'static str,
}

/// A table of what is told of operations on files.
struct IoTable<'a> {
    title: &'static str,
    /// What is said of it.
    words: &'static str,
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    /// What stands out in it.
    says: Option<&'a str>,
}

impl<'a> IoTable<'a> {
    /// All that have a row; `first` is the head of the first column.
    fn all(report: &'a Report) -> Vec<Self> {
        let table = |title, words, first, head: &[&'static str], rows| {
            let head = std::iter::once(first).chain(head[1..].iter().copied()).collect();
            Self { title, words, head, rows, says: None }
        };
        let (files, threads) = (&report.files, &report.threads);
        let slowest = report.slowest.iter().map(SlowRow::cells).collect();
        let by_file = table("Files", files::OF_FILES, "File", &files::HEAD, files.cells());
        let by_thread = table(
            "I/O by thread",
            io_threads::OF_THREADS,
            "Thread",
            &io_threads::thread_head(),
            threads.thread_cells(),
        );
        let all = [
            Self { says: files.says.as_deref(), ..by_file },
            table(
                "Folders",
                files::OF_FOLDERS,
                "Folder",
                &files::FOLDER_HEAD,
                files.folder_cells(),
            ),
            table(
                "Slowest operations",
                slow_ops::OF_SLOWEST,
                "Operation",
                &slow_ops::HEAD,
                slowest,
            ),
            table(
                "I/O by program",
                io_threads::OF_PROGRAMS,
                "Program",
                &io_threads::HEAD,
                threads.program_cells(),
            ),
            Self { says: threads.uneven.as_deref(), ..by_thread },
        ];
        all.into_iter().filter(|table| !table.rows.is_empty()).collect()
    }
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
        took: report.who.took(),
        span: long_duration(span_ns),
        axis: (0..=MARKS).map(|mark| mark_words(span_ns, mark)).collect(),
        tracks: course.tracks.iter().map(TrackShape::of).collect(),
        heat: Heat::of(whole),
        nodes: report.nodes.iter().map(tables::node_cells).collect(),
        parts: report.parts.iter().map(tables::part_cells).collect(),
        devices: report.devices.iter().map(tables::device_cells).collect(),
        more_devices: tables::more_devices(report),
        io: report.io.cells(),
        latency: LatencyMap::of(whole),
        tables: IoTable::all(report),
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
