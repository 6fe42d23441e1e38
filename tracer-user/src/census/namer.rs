//! The thread that names what was seen. It alone waits for folders; who tells it something, or takes what is named, waits
//! for nobody.

use std::{
    collections::BTreeMap,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::{Builder, JoinHandle},
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
    seen::{Consent, Seen},
    software::{Level, Software},
};

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
        Self { level: Level::Names, site: Site::default(), deadline, apart: false }
    }
}

/// Names what leases were seen to run.
pub struct Namer {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
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
    /// What was seen, where it is not named yet.
    seen: Option<Seen>,
    /// What is named, and nobody took.
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
        let thread = thread.spawn(work).context("cannot start the thread that names software")?;
        Ok(Self { shared, thread })
    }

    /// Tells what was seen of `lease` so far, all of it. Never waits for a disk.
    pub fn tell(&self, lease: Lease, seen: Seen) {
        self.shared.lock().jobs.entry(lease).or_default().seen = Some(seen);
        self.shared.changed.notify_all();
    }

    /// What was named since it was taken last: of each lease all of it. Never waits for a disk.
    pub fn take(&self) -> BTreeMap<Lease, Software> {
        let mut state = self.shared.lock();
        let named = state.jobs.iter_mut().map(|(lease, job)| Some((*lease, job.named.take()?)));
        named.flatten().collect()
    }

    /// Whether nothing that was told of `lease` is still to be named. Never waits for a disk.
    pub fn has_settled(&self, lease: Lease) -> bool {
        let state = self.shared.lock();
        let is_due = state.jobs.get(&lease).is_some_and(|job| job.seen.is_some());
        !(is_due || state.at == Some(lease)) || self.thread.is_finished()
    }

    /// Forgets `lease`, whose record is final.
    pub fn forget(&self, lease: Lease) {
        self.shared.lock().jobs.remove(&lease);
    }

    /// Waits until all is named that was told, `most` at most; gives whether it is.
    pub fn settle(&self, most: Duration) -> bool {
        let is_busy = |state: &mut State| {
            let is_due = state.at.is_some() || state.jobs.values().any(|job| job.seen.is_some());
            is_due && !state.ended && !self.thread.is_finished()
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
            let is_told = naming.level_of(&seen) > Level::Counts;
            let packages = if seen.consent == Consent::Refused || !is_told {
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
            let due =
                state.jobs.iter_mut().find_map(|(lease, job)| Some((*lease, job.seen.take()?)));
            if let Some((lease, seen)) = due {
                state.at = Some(lease);
                return Some((lease, seen));
            }
            state = self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests;
