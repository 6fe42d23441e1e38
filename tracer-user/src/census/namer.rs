//! The thread that names what was seen. It alone waits for folders; who tells it something, or takes what is named, waits
//! for nobody.

use std::{
    collections::BTreeMap,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::Builder,
    time::Duration,
};

use anyhow::{Context, Result};

use super::{
    apart::{ask, ask_apart},
    lister::Lister,
    naming::{Installed, Naming},
    rules::Rules,
    site::Site,
};
use crate::model::{
    lease::Lease,
    seen::{Seen, SeenProgram},
    software::{Level, Software},
};

/// Sightings of each kind that are kept of one job.
const MOST_SIGHTINGS: usize = 4096;

/// How it names.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much is told.
    pub level: Level,
    /// The site's settings.
    pub site: Site,
    /// How long a folder is waited for.
    pub deadline: Duration,
    /// Whether folders are asked by a process of their own: this one is jobtrace, and may end while one hangs.
    pub apart: bool,
}

impl Default for Options {
    fn default() -> Self {
        let deadline = Duration::from_secs(2);
        Self { level: Level::Names, site: Site::default(), deadline, apart: !cfg!(test) }
    }
}

/// Names what leases were seen to run.
pub struct Namer {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: BTreeMap<Lease, Job>,
    /// The one that is being named.
    at: Option<Lease>,
    ended: bool,
}

#[derive(Default)]
struct Job {
    /// What was seen, but for its programs.
    seen: Seen,
    /// Those, with their executions.
    programs: BTreeMap<String, u64>,
    /// Sightings that were beyond what is kept.
    beyond: u64,
    /// Whether something was told since it was named.
    is_due: bool,
    /// What is named so far.
    named: Option<Software>,
}

impl Namer {
    /// Starts the thread.
    ///
    /// # Errors
    /// When a pattern of the site's is no regular expression, or there can be no thread.
    pub fn new(options: Options) -> Result<Self> {
        let naming = Naming::new(options.level, Rules::new(options.site)?)?;
        let ask = if options.apart { ask_apart } else { ask };
        let lister = Lister::new(options.deadline, options.level == Level::Full, ask);
        let shared = Arc::<Shared>::default();
        let own = shared.clone();
        let thread = Builder::new().name("jobtrace-names".into());
        let work = move || own.work(&naming, lister);
        thread.spawn(work).context("cannot start the thread that names software")?;
        Ok(Self { shared })
    }

    /// Tells what was seen of `lease`, all of it or what is new. Never waits for a disk.
    pub fn tell(&self, lease: Lease, seen: Seen) {
        let mut state = self.shared.lock();
        let job = state.jobs.entry(lease).or_default();
        job.add(seen);
        job.is_due = true;
        self.shared.changed.notify_all();
    }

    /// What is named of `lease` so far; `None` where nothing is. Never waits for a disk.
    pub fn take(&self, lease: Lease) -> Option<Software> {
        self.shared.lock().jobs.get(&lease)?.named.clone()
    }

    /// Forgets `lease`, whose record is final.
    pub fn forget(&self, lease: Lease) {
        self.shared.lock().jobs.remove(&lease);
    }

    /// Waits until all is named that was told, `most` at most; gives whether it is.
    pub fn settle(&self, most: Duration) -> bool {
        let is_busy = |state: &mut State| {
            !state.ended && (state.at.is_some() || state.jobs.values().any(|job| job.is_due))
        };
        let waited = self.shared.changed.wait_timeout_while(self.shared.lock(), most, is_busy);
        waited.is_ok_and(|(_, waited)| !waited.timed_out())
    }
}

impl Drop for Namer {
    fn drop(&mut self) {
        // It is not waited for: it may wait for a folder.
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // What it holds is whole at any moment.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn work(&self, naming: &Naming, mut lister: Lister) {
        while let Some((lease, seen)) = self.next() {
            let packages = if seen.opted_out || naming.level() == Level::Counts {
                Default::default()
            } else {
                Naming::packages(&seen)
            };
            let mut listings = BTreeMap::new();
            for package in packages.iter().filter(|package| package.site.ends_with("-packages")) {
                let key = (package.site.clone(), package.site_inode);
                listings.entry(key).or_insert_with_key(|(site, inode)| lister.list(site, *inode));
            }
            let named = naming.software(&seen, |package| {
                let key = (package.site.clone(), package.site_inode);
                let known = listings.get(&key).and_then(Option::as_deref);
                known.map_or(Installed::Unread, Installed::Listed)
            });
            let mut state = self.lock();
            // It may be forgotten by now.
            if let Some(job) = state.jobs.get_mut(&lease) {
                job.named = Some(named);
            }
            state.at = None;
            self.changed.notify_all();
        }
    }

    /// Waits for something that is to be named; `None` at the end.
    fn next(&self) -> Option<(Lease, Seen)> {
        let mut state = self.lock();
        loop {
            if state.ended {
                return None;
            }
            if let Some((lease, job)) = state.jobs.iter_mut().find(|(_, job)| job.is_due) {
                job.is_due = false;
                let mut seen = job.seen.clone();
                let program =
                    |(path, n): (&String, &u64)| SeenProgram { path: path.clone(), executions: *n };
                seen.programs = job.programs.iter().map(program).collect();
                seen.lost = seen.lost.saturating_add(job.beyond);
                let lease = *lease;
                state.at = Some(lease);
                return Some((lease, seen));
            }
            state = self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }
}

impl Job {
    fn add(&mut self, more: Seen) {
        for SeenProgram { path, executions } in more.programs {
            let is_room = self.programs.len() < MOST_SIGHTINGS;
            match self.programs.get_mut(&path) {
                Some(known) => *known = executions.max(*known),
                None if is_room => drop(self.programs.insert(path, executions)),
                None => self.beyond += 1,
            }
        }
        let seen = &mut self.seen;
        self.beyond += join(&mut seen.libraries, more.libraries);
        self.beyond += join(&mut seen.packages, more.packages);
        seen.python_processes_most = seen.python_processes_most.max(more.python_processes_most);
        seen.lost = seen.lost.max(more.lost);
        seen.means = more.means;
        seen.is_partial |= more.is_partial;
        seen.since_begin = more.since_begin;
        seen.opted_out |= more.opted_out;
    }
}

/// Adds those of `more` that are new; gives the number of those that are too many.
fn join<T: Ord>(known: &mut Vec<T>, more: Vec<T>) -> u64 {
    known.extend(more);
    known.sort();
    known.dedup();
    let beyond = known.len().saturating_sub(MOST_SIGHTINGS) as u64;
    known.truncate(MOST_SIGHTINGS);
    beyond
}

#[cfg(test)]
mod tests;
