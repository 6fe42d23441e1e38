//! A copy of the records in one folder in another, on a file system that a cluster shares: each node copies its own
//! files, atomically, and only what has changed. Nothing is kept besides: heads are copied last, with their time, so
//! a folder whose heads have the same time there is whole there.
//!
//! Copies have an age limit of their own: what the agent removes for its age or size stays there, and so does all of a
//! node that lost its records. Only what is gone here although older records are not was withdrawn, and goes there too.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    super::name::{self, NO_OWNER},
    LONGEST_BYTES,
    heads::LONGEST_BYTES as HEADS_LONGEST_BYTES,
    limits::all_days,
    rights::{Rights, Users},
};
use crate::files::folder::{Folder, Stat};

mod copies;

use copies::{Copies, Key};

/// Time between two looks at which copies are too old.
const LIMIT_EVERY: Duration = Duration::from_secs(86_400);

/// Who may read the copies.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    clap::ValueEnum,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Each user his own, by an access control list on his folder.
    #[default]
    Users,
    /// Whom the folder of a user lets, which root has made; no other user's records are copied.
    Prepared,
    /// Everybody everything.
    Open,
}

/// What a round did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Records copied.
    pub records: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Copies removed, because their records were withdrawn here.
    pub removed: u64,
    /// Copies removed, because they were too old.
    pub old: u64,
    /// Users without a folder there, whose records are not copied ([`Access::Prepared`]).
    pub unprepared: BTreeSet<String>,
    /// Users into whose folders there this process may not write: their records are not copied.
    pub refused: BTreeSet<String>,
    /// Whether users cannot read theirs, because the file system has no access control lists ([`Access::Users`]): told
    /// once.
    pub lacks_lists: bool,
}

/// A folder and its copy.
#[derive(Debug)]
pub struct Mirror {
    from: PathBuf,
    to: PathBuf,
    access: Access,
    max_age: Duration,
    rights: Rights,
    /// The heads that are there, as they were when they were copied.
    done: BTreeMap<Key, Stat>,
    /// When copies that are too old were looked for last.
    limited: Option<Instant>,
}

/// What one round works with.
struct Round<'a, F> {
    from: &'a Folder,
    to: &'a Folder,
    /// Copies that were seen last before are too old.
    oldest_ns: u64,
    go_on: F,
    /// When the oldest record here was seen last, by its node's heads.
    oldest_here_ns: RefCell<BTreeMap<String, u64>>,
}

impl Mirror {
    /// Of `from` in `to`, which must be there: a mount that is missing is not to be filled. Copies of records that were
    /// seen last longer than `max_age` ago are removed.
    pub fn new(from: &Path, to: &Path, access: Access, max_age: Duration) -> Self {
        let rights = match access {
            Access::Users => Rights::Users(Users::new()),
            Access::Prepared => Rights::Umask,
            Access::Open => Rights::Open,
        };
        let (from, to, done) = (from.to_owned(), to.to_owned(), BTreeMap::new());
        Self { from, to, access, max_age, rights, done, limited: None }
    }

    /// Copies what has changed since the last round, now that it is `wall_ns`, as long as `go_on`, which is asked before
    /// each file; and removes what was withdrawn here and, once a day, what is too old.
    ///
    /// # Errors
    /// When one of the two folders cannot be read or written; what was copied is whole, and the next round goes on.
    pub fn round(&mut self, wall_ns: u64, go_on: impl Fn() -> bool) -> io::Result<Copied> {
        let (from, to) = (&Folder::open(&self.from)?, &Folder::open(&self.to)?);
        self.rights.of_top(to)?;
        let max_age_ns = u64::try_from(self.max_age.as_nanos()).unwrap_or(u64::MAX);
        let oldest_ns = wall_ns.saturating_sub(max_age_ns);
        let round = Round { from, to, oldest_ns, go_on, oldest_here_ns: RefCell::default() };
        let (mut copied, mut seen) = (Copied::default(), BTreeSet::new());
        for (owner, day) in all_days(from)? {
            let Ok(here) = from.folder(&owner).and_then(|folder| folder.folder(&day)) else {
                continue;
            };
            let names: Vec<_> = here.entries()?.into_iter().map(|(name, _)| name).collect();
            for heads in names.iter().filter(|name| name::is_heads(name)) {
                let Some(stat) = here.stat(heads) else { continue };
                let key = Key { owner: owner.clone(), day: day.clone(), heads: heads.clone() };
                seen.insert(key.clone());
                if self.done.get(&key) == Some(&stat) {
                    continue;
                }
                if !(round.go_on)() {
                    return Ok(copied);
                }
                match self.copy_day(&round, &here, &names, &key, stat, &mut copied) {
                    Ok(true) => drop(self.done.insert(key, stat)),
                    Ok(false) => {}
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        copied.refused.insert(owner.clone());
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        let hosts: BTreeSet<_> = seen.iter().map(|key| key.heads.clone()).collect();
        let mut gone: BTreeSet<_> = self.done.keys().cloned().collect();
        if self.limited.is_none() {
            // While nobody copied, a job's owner may have come to light: its record was the day's only one.
            let days = all_days(to)?.into_iter().filter(|(owner, _)| owner == NO_OWNER);
            gone.extend(days.flat_map(|day| keys(day, &hosts)));
        }
        for key in gone.difference(&seen) {
            let oldest_here_ns = round.oldest_here_ns(key)?;
            copied.removed += self.remove(&round, key, |stat| stat.modified_ns > oldest_here_ns)?;
            self.done.remove(key);
        }
        if self.limited.is_none_or(|last| last.elapsed() >= LIMIT_EVERY) {
            // A record lies in the day of its begin.
            let last_day = name::day(oldest_ns);
            let days = all_days(to)?.into_iter().filter(|(_, day)| *day <= last_day);
            for key in days.flat_map(|day| keys(day, &hosts)) {
                copied.old += self.remove(&round, &key, |stat| stat.modified_ns < oldest_ns)?;
            }
            self.limited = Some(Instant::now());
        }
        copied.lacks_lists = self.rights.take_lacks_lists();
        Ok(copied)
    }

    /// Copies the records of one node's heads; gives whether they are there now.
    fn copy_day<F: Fn() -> bool>(
        &self,
        round: &Round<F>,
        here: &Folder,
        names: &[String],
        key: &Key,
        stat: Stat,
        copied: &mut Copied,
    ) -> io::Result<bool> {
        let names: BTreeSet<_> =
            names.iter().map(String::as_str).filter(|name| key.has(name)).collect();
        let stats = names.iter().filter_map(|name| Some((*name, here.stat(name)?)));
        let young: Vec<_> = stats.filter(|(_, stat)| stat.modified_ns >= round.oldest_ns).collect();
        if young.is_empty() {
            return Ok(true);
        }
        let Some(of_owner) = self.owner(round.to, &key.owner)? else {
            copied.unprepared.insert(key.owner.clone());
            return Ok(false);
        };
        let copies = Copies::make(&self.rights, of_owner, key)?;
        if copies.stat(&key.heads).is_some_and(|there| there.is_as_old_as(stat)) {
            return Ok(true);
        }
        // Before the records: what comes meanwhile is told of in the next round.
        let text = here.read(&key.heads, HEADS_LONGEST_BYTES)?;
        let before = self.done.get(key).map(|done| done.modified_ns);
        for (name, stat) in young {
            let is_there = match before {
                // What this process has copied stands, unless it was written since.
                Some(before_ns) => stat.changed_ns < before_ns,
                None => copies.stat(name).is_some_and(|there| there.is_like(stat)),
            };
            if is_there {
                continue;
            }
            if !(round.go_on)() {
                return Ok(false);
            }
            let bytes = match here.read(name, LONGEST_BYTES) {
                // It has moved.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                read => read?,
            };
            copies.put(name, &bytes, stat.modified_ns)?;
            copied.records += 1;
            copied.bytes += bytes.len() as u64;
        }
        let oldest_here_ns = round.oldest_here_ns(key)?;
        copied.removed += copies
            .remove(|name, stat| !names.contains(name) && stat.modified_ns > oldest_here_ns)?;
        copies.put_heads(&text, stat.modified_ns)?;
        Ok(true)
    }

    /// The folder of an owner there, made where it is absent, with its rights; `None` where root is to make it.
    fn owner(&self, to: &Folder, owner: &str) -> io::Result<Option<Folder>> {
        let folder = match to.folder(owner) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if self.access == Access::Prepared {
                    return Ok(None);
                }
                self.rights.forget(owner);
                to.make_folder(owner)?.0
            }
            found => found?,
        };
        self.rights.of_owner(&folder, owner)?;
        Ok(Some(folder))
    }

    /// Removes the copies of `key` that `goes` names, with their heads; gives how many.
    fn remove<F: Fn() -> bool>(
        &self,
        round: &Round<F>,
        key: &Key,
        goes: impl Fn(Stat) -> bool,
    ) -> io::Result<u64> {
        let Some(copies) = Copies::find(&self.rights, round.to, key)? else { return Ok(0) };
        let removed = copies.remove(|_, stat| (round.go_on)() && goes(stat))?;
        if removed > 0 {
            let heads = copies.stat(&key.heads);
            copies.put_heads(&[], heads.map_or(0, |heads| heads.modified_ns))?;
        }
        Ok(removed)
    }
}

impl<F> Round<'_, F> {
    /// When the oldest record here of the node whose heads are `key`'s was seen last; later than any where there is none.
    fn oldest_here_ns(&self, key: &Key) -> io::Result<u64> {
        if let Some(known) = self.oldest_here_ns.borrow().get(&key.heads) {
            return Ok(*known);
        }
        let mut oldest_ns = u64::MAX;
        for (owner, day) in all_days(self.from)? {
            let folder = self.from.folder(&owner).and_then(|folder| folder.folder(&day));
            // It went meanwhile.
            let Ok(folder) = folder else { continue };
            let names = folder.entries()?.into_iter().map(|(name, _)| name);
            let seen = names.filter(|name| key.has(name)).filter_map(|name| folder.stat(&name));
            oldest_ns = seen.map(|stat| stat.modified_ns).min().unwrap_or(oldest_ns).min(oldest_ns);
        }
        self.oldest_here_ns.borrow_mut().insert(key.heads.clone(), oldest_ns);
        Ok(oldest_ns)
    }
}

/// The keys of some nodes' heads in the folder of a day.
fn keys<'a>(
    (owner, day): (String, String),
    heads: &'a BTreeSet<String>,
) -> impl Iterator<Item = Key> + use<'a> {
    heads.iter().map(move |heads| Key {
        owner: owner.clone(),
        day: day.clone(),
        heads: heads.clone(),
    })
}
