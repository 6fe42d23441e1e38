//! Drawings: the course as areas, the nodes' cores as a map of shades. Whole numbers and one path for each shade: what
//! 64 nodes do in a day is some tens of kB.

use std::fmt::Write;

use crate::{
    base::units::long_duration,
    record::{
        Record,
        series::SERIES,
        timeline::{MOST_COLUMNS, Timeline},
    },
    report::{Track, Whole, whole::number},
    view::line::Tone,
};

/// Nodes of which there is a row each; of more, none fits a page.
const MOST_NODES: usize = 512;
/// Columns of the map.
const COLUMNS: u64 = MOST_COLUMNS / 2;
/// Shades; nothing at all has none.
const SHADES: usize = 6;
/// Pixels of a row, and of the map at least and most.
const ROW_PX: usize = 9;
const HEIGHT_PX: (usize, usize) = (40, 640);

/// A track as an area.
pub struct TrackShape {
    pub name: &'static str,
    pub words: String,
    pub tone: Tone,
    pub most: String,
    /// What a full column is, where that is more than the largest value.
    pub full: Option<String>,
    pub columns: usize,
    pub path: String,
}

impl TrackShape {
    pub fn of(track: &Track) -> Self {
        let columns = track.values.len();
        let mut path = String::new();
        for (at, share) in track.resampled(columns).into_iter().enumerate() {
            // What is unknown is a gap; nothing is a hair line.
            let Some(share) = share else { continue };
            let height = ((share * 98.0).round() as u64).clamp(1, 100);
            let _ = write!(path, "M{at} 100v-{height}h1v{height}z");
        }
        let words = format!("{} over time: at most {}", track.name, track.most);
        let full = track.full_in_words();
        let (name, tone, most) = (track.name, track.tone(), track.most.clone());
        Self { name, words, tone, most, full, columns, path }
    }
}

/// Nodes by time, by how busy their cores were.
pub struct Heat {
    pub words: String,
    pub columns: u64,
    pub rows: usize,
    pub height: usize,
    /// Number of the shade and its path.
    pub shades: Vec<(usize, String)>,
    /// Number of each shade, where it has one, and which part of a node's cores it stands for.
    pub legend: Vec<(Option<usize>, String)>,
}

impl Heat {
    /// Of a job on several nodes; `None` on one, or on more than fit.
    pub fn of(whole: &Whole) -> Option<Self> {
        let nodes = &whole.nodes;
        if !(2..=MOST_NODES).contains(&nodes.len()) {
            return None;
        }
        let all = &whole.record.timeline;
        let mut shades = vec![String::new(); SHADES];
        for (row, node) in nodes.iter().enumerate() {
            let cells = cells(node, all);
            let mut at = 0;
            while at < cells.len() {
                let run = cells[at..].iter().take_while(|shade| **shade == cells[at]).count();
                if let Some(shade) = cells[at] {
                    let _ = write!(shades[shade], "M{at} {row}h{run}v1h-{run}z");
                }
                at += run;
            }
        }
        let span = long_duration(all.end_ns().saturating_sub(all.begin_ns()));
        let (least, most) = HEIGHT_PX;
        Some(Self {
            words: format!(
                "{} nodes from top to bottom by name, {span} from left to right",
                nodes.len()
            ),
            columns: COLUMNS,
            rows: nodes.len(),
            height: (nodes.len() * ROW_PX).clamp(least, most),
            shades: (1..).zip(shades).filter(|(_, path)| !path.is_empty()).collect(),
            legend: legend(),
        })
    }
}

/// The shades in words: `no core in use`, then steps of equal width.
fn legend() -> Vec<(Option<usize>, String)> {
    let step = |shade: usize| {
        let up_to = (shade * 100).div_ceil(SHADES);
        let words = if shade == 1 { "of its cores in use" } else { "" };
        (Some(shade), format!("up to {up_to} % {words}").trim_end().to_owned())
    };
    std::iter::once((None, "none".to_owned())).chain((1..=SHADES).map(step)).collect()
}

/// The shade of each column of the whole job's time.
fn cells(node: &Record, all: &Timeline) -> Vec<Option<usize>> {
    let held = number(node, crate::model::tables::Cpu::cores_held).unwrap_or(0) as f64 / 1000.0;
    let place = SERIES.iter().position(|series| series.name == "on_cpu_ns");
    let own: Vec<_> = node.timeline.columns().map(|column| column[place?]).collect();
    let span_ns = all.end_ns().saturating_sub(all.begin_ns()).max(1);
    let width_ns = node.timeline.width_ns();
    let cell = |at: u64| {
        let from =
            all.begin_ns() + (u128::from(span_ns) * u128::from(at) / u128::from(COLUMNS)) as u64;
        let until = all.begin_ns()
            + (u128::from(span_ns) * u128::from(at + 1) / u128::from(COLUMNS)) as u64;
        let index =
            |ns: u64| (ns.checked_sub(node.timeline.start_ns())? / width_ns).try_into().ok();
        let (first, last): (usize, usize) =
            (index(from)?, index(until.saturating_sub(1).max(from))?);
        let known: Vec<u64> =
            own.get(first..(last + 1).min(own.len()))?.iter().flatten().copied().collect();
        let sum: u64 = known.iter().fold(0, |sum, ns| sum.saturating_add(*ns));
        let share = sum as f64 / (known.len().max(1) as f64 * width_ns as f64) / held.max(0.001);
        (!known.is_empty() && sum > 0).then(|| ((share * SHADES as f64) as usize).min(SHADES - 1))
    };
    (0..COLUMNS).map(cell).collect()
}
