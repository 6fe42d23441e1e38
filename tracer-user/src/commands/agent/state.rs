//! The agent's state for the next one: what was reported last, and whose each lease is. Only where the
//! programs stay attached (`pin`).
//!
//! Two files in the state folder, on a file system that a reboot clears, as it clears the programs. The
//! state is written whole at each interval and committed by a rename; the journal of that state gets a
//! line for all that must not be lost before the next.

mod shared;

use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::{
    base::identity::boot_id,
    gpu::Claims,
    model::{
        gaps::Gaps,
        group::Group,
        info::{Facts, JobInfo},
        job::Job,
        lease::Lease,
        parts::Parts,
        seen::Consent,
        snapshot::Snapshot,
        software::Software,
        totals::Peaks,
    },
    probes::{Carried, Cgroup},
    record::timeline::Timeline,
};

use shared::Place;

const STATE: &str = "state.json";
const JOURNAL: &str = "journal-";

/// A job as the next agent is to know it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownJob {
    /// Which.
    pub job: Job,
    /// What its paths name it.
    pub names: Vec<Job>,
    /// Who is charged for it.
    pub lease: Option<Lease>,
    /// Its topmost directory.
    pub root: PathBuf,
    /// What is known of it.
    pub info: JobInfo,
    /// Its owner.
    pub uid: Option<u32>,
    /// Whether it was let go, and only its last values or records are awaited.
    pub is_released: bool,
    /// When its last cgroup was removed, CLOCK_MONOTONIC; `None` while it has some.
    pub ended_ns: Option<u64>,
    /// When its last cgroup was removed, nanoseconds since the Unix epoch, and whether that has been told.
    pub ended: Option<(u64, bool)>,
    /// Whether all its programs could tell is known.
    pub known: bool,
    /// What was counted of it.
    pub counted: Counted,
    /// The GPUs that its environment names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Claims>,
}

/// What a job's record is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counted {
    /// What was told of it.
    pub facts: Facts,
    /// Its clock: what CLOCK_MONOTONIC's zero was by the wall clock when it was seen first.
    pub boot_ns: u64,
    /// When a process of it was killed last for lack of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub killed_ns: Option<u64>,
    /// When its scheduler says that it began, seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_s: Option<u64>,
    /// Times in which something of it could not be counted.
    #[serde(default, skip_serializing_if = "Gaps::is_empty")]
    pub gaps: Gaps,
    /// Its steps and tasks.
    #[serde(default, skip_serializing_if = "Parts::is_empty")]
    pub parts: Parts,
    /// By which stamp its end was told.
    pub end_stamp_ns: Option<u64>,
    /// Whether a record that tells of its end is saved.
    pub end_saved: bool,
    /// Where records of it may lie: `1000/2026-11-22/slurm-4711-…`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
    /// For how long it was counted.
    pub elapsed_ns: u64,
    /// Over how many intervals.
    pub intervals: u64,
    /// Its busiest ones.
    pub peaks: Peaks,
    /// Its values so far.
    pub totals: Vec<Group>,
    /// What was lost on the node meanwhile.
    pub losses: Vec<Group>,
    /// The software that it was seen to run, by names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub software: Option<Software>,
    /// What its environment says of telling that.
    #[serde(default = "unknown", skip_serializing_if = "Consent::is_unknown")]
    pub consent: Consent,
    /// Its values over time.
    pub timeline: Timeline,
}

fn unknown() -> Consent {
    Consent::Unknown
}

/// All of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentState {
    boot: String,
    /// Number of its journal.
    journal: u64,
    /// The files of the spool that were committed with it.
    pub files: Option<String>,
    /// Stamp of the last interval.
    pub stamp_ns: u64,
    /// What was reported up to then.
    pub reported: Snapshot,
    /// What the probes carry on.
    pub carried: Carried,
    /// The jobs.
    pub jobs: Vec<KnownJob>,
    /// Of each job, which of its values are among those reported; as it is saved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shared: Vec<Vec<Place>>,
    /// The job of each lease that may still have values.
    pub owners: Vec<(Lease, Job)>,
}

/// A line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum JournalEntry {
    /// A cgroup was made, with a lease of its own; its path is the kernel's.
    Made(Lease, Cgroup, PathBuf),
    /// A lease is a job's.
    Owner(Lease, Job, PathBuf),
    /// A job is called otherwise.
    Renamed(Job, Job),
    /// To a directory of a job's, which is gone, so many bytes had been charged at once.
    Peak(Job, PathBuf, u64),
    /// The last values of a lease.
    Closed(Lease, Vec<Group>),
}

/// The folder, and the journal being written.
pub struct Keeper {
    dir: PathBuf,
    number: u64,
    journal: Option<File>,
}

impl Keeper {
    /// For the state folder `dir`.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), number: 0, journal: None }
    }

    /// The state that an agent before this one left in this boot, with its journal; `None` without one.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn read(&mut self) -> Result<Option<(AgentState, Vec<JournalEntry>)>> {
        let path = self.dir.join(STATE);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let state: AgentState = serde_json::from_slice(&text)
            .with_context(|| format!("{} is damaged or from another version", path.display()))?;
        let state = state.whole().with_context(|| format!("{} is damaged", path.display()))?;
        ensure!(state.boot == boot_id(), "{} is from another boot", path.display());
        self.number = state.journal;
        let journal = self.journal_path(state.journal);
        let mut entries = Vec::new();
        if let Ok(file) = File::open(&journal) {
            for line in BufReader::new(file).split(b'\n') {
                let line = line.with_context(|| format!("cannot read {}", journal.display()))?;
                // One may be torn: the agent was killed in it, before what it tells was done.
                entries.extend(serde_json::from_slice::<JournalEntry>(&line).ok());
            }
        }
        let mut more = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&journal)
            .with_context(|| format!("cannot write {}", journal.display()))?;
        more.write_all(b"\n").context("cannot write the agent's journal")?;
        self.journal = Some(more);
        Ok(Some((state, entries)))
    }

    /// Commits `state`, whose journal begins empty.
    ///
    /// # Errors
    /// When it cannot be written; the one before stands.
    pub fn commit(&mut self, mut state: AgentState) -> Result<()> {
        state.journal = self.number + 1;
        let fresh = self.journal_path(state.journal);
        // Whoever may read it sees what all jobs ran.
        let private = |file: &Path| {
            OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(file)
        };
        let journal = private(&fresh);
        let journal = journal.with_context(|| format!("cannot write {}", fresh.display()))?;
        let (path, tmp) = (self.dir.join(STATE), self.dir.join("state.tmp"));
        state.share();
        let text = serde_json::to_vec(&state).context("cannot encode the state")?;
        // One that was left half-written keeps the rights that it had.
        let _ = fs::remove_file(&tmp);
        let written = private(&tmp).and_then(|mut file| file.write_all(&text));
        written.with_context(|| format!("cannot write {}", tmp.display()))?;
        fs::rename(&tmp, &path).with_context(|| format!("cannot write {}", path.display()))?;
        let old = self.journal_path(self.number);
        self.number = state.journal;
        self.journal = Some(journal);
        // The state names its journal: an old one is only litter.
        let _ = fs::remove_file(old);
        Ok(())
    }

    /// Adds to the journal; nothing before the first [`Self::commit`].
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn note(&mut self, entry: &JournalEntry) -> Result<()> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let mut line = serde_json::to_vec(entry).context("cannot encode the state")?;
        line.push(b'\n');
        journal.write_all(&line).context("cannot write the agent's journal")
    }

    /// Removes state and journals.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn clear(&mut self) -> Result<()> {
        self.journal = None;
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name == STATE || name == "state.tmp" || name.starts_with(JOURNAL) {
                let path = entry.path();
                fs::remove_file(&path)
                    .with_context(|| format!("cannot remove {}", path.display()))?;
            }
        }
        Ok(())
    }

    fn journal_path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{JOURNAL}{number}"))
    }
}

impl AgentState {
    /// A state of this boot.
    pub fn new(
        files: Option<&str>,
        stamp_ns: u64,
        reported: Snapshot,
        carried: Carried,
        jobs: Vec<KnownJob>,
        owners: Vec<(Lease, Job)>,
    ) -> Self {
        let files = files.map(str::to_owned);
        let (boot, shared) = (boot_id(), Vec::new());
        Self { boot, journal: 0, files, stamp_ns, reported, carried, jobs, shared, owners }
    }

    /// Leaves out what it would hold twice.
    fn share(&mut self) {
        let slots = &self.reported.slots;
        let of_job = |job: &mut KnownJob| {
            let of_lease = job.lease.and_then(|lease| slots.get(&lease));
            shared::take_out(&mut job.counted.totals, of_lease.map_or(&[], Vec::as_slice))
        };
        self.shared = self.jobs.iter_mut().map(of_job).collect();
    }

    /// The opposite.
    fn whole(mut self) -> Result<Self> {
        for (job, places) in self.jobs.iter_mut().zip(std::mem::take(&mut self.shared)) {
            let of_lease = job.lease.and_then(|lease| self.reported.slots.get(&lease));
            let of_lease = of_lease.map_or(&[][..], Vec::as_slice);
            shared::put_back(&mut job.counted.totals, of_lease, &places)?;
        }
        Ok(self)
    }
}
