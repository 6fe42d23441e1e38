//! Recordings: the snapshots of a run in a file, from which it can be told again.
//!
//! One JSON object a line: a [`Header`], a `Snapshot` each, at last `{"end":…}` with an [`End`].
//! Compressed where the name ends in `.gz`. Computes nothing.

mod lines;
mod record;

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize, de::IgnoredAny};

use lines::{Line, Lines};
pub use record::Recorder;

use crate::model::{
    files::Files,
    info::{Exit, JobInfo},
    job::Job,
    lease::Lease,
    point::Origin,
    snapshot::Snapshot,
    source::Source,
};

/// Version of the recordings this program writes and the only one it reads.
pub const VERSION: u32 = 1;

/// What a recording begins with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// [`VERSION`].
    #[serde(rename = "jobtrace_recording")]
    pub version: u32,
    /// Where it was made.
    pub origin: Origin,
    /// Whose each slot was.
    pub jobs: BTreeMap<Lease, Job>,
    /// What was known of the run at its start.
    pub info: JobInfo,
    /// Time between two snapshots.
    pub interval_ns: u64,
    /// What the reader must know: a hook missing.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Keys of measurements that cannot be known here (`block`): their absence is not zero.
    #[serde(default)]
    pub unknown: Vec<String>,
}

/// What a recording ends with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// How the command ended.
    pub exit: Exit,
    /// When, in nanoseconds since the Unix epoch.
    pub wall_ns: u64,
    /// What came up during the run.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The files that it used most, where it was asked for them.
    #[serde(default, skip_serializing_if = "Files::is_empty")]
    pub files: Files,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndLine {
    end: End,
}

fn is_gz(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

/// Reads a recording; as a [`Source`] it gives the snapshots in their order.
pub struct Replay {
    lines: Lines,
    header: Header,
    end: Option<End>,
    notes: Vec<String>,
    last_monotonic_ns: u64,
    done: bool,
}

impl Replay {
    /// Opens the recording, standard input for `-`, and reads its header.
    ///
    /// # Errors
    /// When the file cannot be read, is no recording, or one of another version.
    pub fn open(path: &Path) -> Result<Self> {
        let mut lines = Lines::open(path)?;
        let header = match lines.next()? {
            Line::Whole(text) => parse_header(&text).map_err(|error| lines.at(error))?,
            Line::Cut | Line::None => {
                bail!("{} is not a recording: it ends within its first line", lines.name)
            }
        };
        let notes = header.notes.clone();
        Ok(Self { lines, header, end: None, notes, last_monotonic_ns: 0, done: false })
    }

    /// What the recording begins with.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What it ends with; `None` until the last snapshot was read, and where it was cut short.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// What the reader must know, so far: the recording's own notes, and that it was cut short.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    fn cut_short(&mut self) {
        let (name, line) = (&self.lines.name, self.lines.number);
        self.notes.push(format!(
            "the recording {name} is cut short at line {line}: anything after that is unknown"
        ));
    }

    /// Reads the end's line; an error where `text` is none.
    fn read_end(&mut self, text: &[u8]) -> Result<()> {
        let EndLine { end } = serde_json::from_slice(text)?;
        self.notes.extend(end.notes.iter().cloned());
        self.end = Some(end);
        match self.lines.next()? {
            Line::None => Ok(()),
            Line::Whole(_) | Line::Cut => bail!("there is data after the recording's end"),
        }
    }

    fn read_snapshot(&mut self, text: &[u8]) -> Result<Snapshot> {
        let snapshot: Snapshot = serde_json::from_slice(text)?;
        if snapshot.monotonic_ns < self.last_monotonic_ns {
            bail!("the snapshot is older than the one before it");
        }
        self.last_monotonic_ns = snapshot.monotonic_ns;
        Ok(snapshot)
    }
}

impl Source for Replay {
    fn snapshot(&mut self) -> Result<Option<Snapshot>> {
        if self.done {
            return Ok(None);
        }
        // Also after an error: what follows garbage is not to be trusted.
        self.done = true;
        match self.lines.next()? {
            Line::Whole(text) if is_end(&text) => {
                self.read_end(&text).map_err(|error| self.lines.at(error))?;
                Ok(None)
            }
            Line::Whole(text) => {
                let snapshot = self.read_snapshot(&text).map_err(|error| self.lines.at(error))?;
                self.done = false;
                Ok(Some(snapshot))
            }
            Line::Cut | Line::None => {
                self.cut_short();
                Ok(None)
            }
        }
    }
}

fn is_end(text: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Probe {
        #[serde(rename = "end")]
        _end: IgnoredAny,
    }
    serde_json::from_slice::<Probe>(text).is_ok()
}

fn parse_header(text: &[u8]) -> Result<Header> {
    #[derive(Deserialize)]
    struct Probe {
        jobtrace_recording: u64,
    }
    // The version first: a header of another one need not parse.
    let probe =
        serde_json::from_slice::<Probe>(text).context("this is not a recording's header")?;
    if probe.jobtrace_recording != u64::from(VERSION) {
        let version = probe.jobtrace_recording;
        bail!(
            "the recording has version {version}, this program reads {VERSION}: replay it with the jobtrace that made it"
        );
    }
    Ok(serde_json::from_slice(text)?)
}
