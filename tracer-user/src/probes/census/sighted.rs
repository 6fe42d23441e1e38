//! What was seen of one lease. Pure: where file systems are mounted arrives as an argument.

use std::collections::{BTreeMap, BTreeSet};

use tracer_ebpf::tables::{
    census::{SightKey, kind},
    io_file::FileId,
};

use super::event::Event;
use crate::model::seen::{Consent, Means, Seen, SeenLibrary, SeenPackage, SeenProgram};

/// Sightings of each kind that are kept of one lease: those beyond are lost, and counted.
const MOST: usize = 4096;

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub struct Sighted {
    /// Paths of programs, and how often they were executed.
    programs: BTreeMap<FileId, (String, u64)>,
    /// Paths of libraries, with the programs that mapped them.
    libraries: BTreeSet<(String, FileId)>,
    /// Folders, names and interpreters of modules.
    modules: BTreeSet<(String, u64, String, FileId)>,
    /// What the kernel remembers of it.
    pub keys: Vec<SightKey>,
    /// Sightings that found no room, or whose path did not.
    pub lost: u64,
    /// Of them, those that this side counted.
    pub cut_off: u64,
    /// The most Python processes at once.
    pub pythons_most: Option<u64>,
    /// Whether modules were mapped whose reading nobody saw.
    pub is_partial: bool,
    /// Whether it was watched from its begin on.
    pub since_begin: bool,
    /// Whether something came since it was asked for.
    pub is_new: bool,
}

impl Sighted {
    /// Takes `event`, whose path is `path`.
    pub fn take(&mut self, event: &Event, path: Option<String>) {
        let SightKey { kind, program, file, .. } = event.key;
        self.is_new = true;
        self.keys.push(event.key);
        let Some(path) = path else {
            self.cut_off += 1;
            return;
        };
        let has_room = match kind {
            kind::PROGRAM => self.programs.len() < MOST || self.programs.contains_key(&program),
            kind::LIBRARY => self.libraries.len() < MOST,
            _ => self.modules.len() < MOST,
        };
        if !has_room {
            self.cut_off += 1;
            return;
        }
        match kind {
            kind::PROGRAM => {
                self.programs.entry(program).or_default().0 = path;
            }
            kind::LIBRARY => {
                self.is_partial |= event.is_mapped && path.contains("-packages/");
                self.libraries.insert((path, program));
            }
            kind::MODULE => {
                self.modules.insert((path, file.inode, event.name.clone(), program));
            }
            _ => {}
        }
    }

    /// Drops what was seen; what the kernel remembers stays known, to be forgotten there.
    pub fn silence(&mut self) {
        // Nor does what was lost: counters only grow.
        let Self { keys, since_begin, lost, cut_off, .. } = std::mem::take(self);
        *self = Self { keys, since_begin, lost, cut_off, ..Self::default() };
    }

    /// A library that a process of the program at `by` had mapped before anybody watched.
    pub fn had(&mut self, path: String, by: FileId, by_path: &str) {
        self.programs.entry(by).or_insert_with(|| (by_path.to_owned(), 0));
        self.libraries.insert((path, by));
    }

    /// The programs of which executions are counted.
    pub fn counted(&mut self) -> impl Iterator<Item = (&FileId, &mut u64)> {
        self.programs.iter_mut().map(|(id, (_, executions))| (id, executions))
    }

    /// All of it, where modules are seen by `means`.
    pub fn seen(&self, means: Means) -> Seen {
        let path_of = |program: &FileId| {
            self.programs.get(program).map(|(path, _)| path.clone()).unwrap_or_default()
        };
        let program = |(path, executions): &(String, u64)| SeenProgram {
            path: path.clone(),
            executions: *executions,
        };
        let executed =
            self.programs.values().filter(|(path, executions)| *executions > 0 && !path.is_empty());
        Seen {
            programs: executed.map(program).collect(),
            libraries: self
                .libraries
                .iter()
                .map(|(path, by)| SeenLibrary { path: path.clone(), by: path_of(by) })
                .collect(),
            packages: self
                .modules
                .iter()
                .map(|(site, inode, name, by)| SeenPackage {
                    site: site.clone(),
                    site_inode: Some(*inode),
                    name: name.clone(),
                    interpreter: path_of(by),
                })
                .collect(),
            // Those that were there before anybody watched are not among none.
            python_processes_most: self.pythons_most.filter(|most| self.since_begin || *most > 0),
            lost: self.lost + self.cut_off,
            means,
            is_partial: self.is_partial,
            since_begin: self.since_begin,
            consent: Consent::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: u32, program: u64, file: u64, name: &str) -> Event {
        let id = |inode| FileId { device: 1, generation: 1, inode };
        let key = SightKey { lease: 1, kind, program: id(program), file: id(file), name: 0 };
        Event { key, is_mapped: false, name: name.into(), inner: None }
    }

    #[test]
    fn modules_that_were_mapped_and_never_read_say_that_others_may_be_missing() {
        let mut sighted = Sighted::default();
        let mapped = |file| Event { is_mapped: true, ..event(kind::LIBRARY, 7, file, "") };
        sighted.take(&mapped(1), Some("/lib64/ld-linux-x86-64.so.2".into()));
        assert!(!sighted.seen(Means::Read).is_partial);
        sighted.take(&mapped(2), Some("/dev/shm/v/site-packages/a/b.so".into()));
        assert!(sighted.seen(Means::Read).is_partial);
    }

    #[test]
    fn silence_drops_what_was_seen_and_no_count() {
        let mut sighted = Sighted { since_begin: true, lost: 3, ..Sighted::default() };
        sighted.take(&event(kind::LIBRARY, 1, 2, ""), Some("/home/ada/lib/x.so".into()));
        sighted.take(&event(kind::PROGRAM, 1, 0, ""), None);
        sighted.silence();
        let seen = sighted.seen(Means::Read);
        assert!(seen.libraries.is_empty() && seen.since_begin);
        assert_eq!((seen.lost, sighted.keys.len()), (4, 2));
    }

    #[test]
    fn of_pythons_that_may_have_been_there_before_none_is_unknown() {
        let most = |since_begin, most| {
            let sighted = Sighted { since_begin, pythons_most: Some(most), ..Sighted::default() };
            sighted.seen(Means::Read).python_processes_most
        };
        assert_eq!((most(true, 0), most(false, 0), most(false, 2)), (Some(0), None, Some(2)));
    }

    #[test]
    fn what_is_too_much_is_counted() {
        let mut sighted = Sighted::default();
        let most = MOST as u64;
        for at in 0..most + 5 {
            sighted.take(&event(kind::PROGRAM, at, 0, ""), Some(format!("/usr/bin/p{at}")));
            sighted.take(&event(kind::LIBRARY, 1, at, ""), Some(format!("/lib/l{at}.so")));
        }
        sighted.counted().for_each(|(_, executions)| *executions = 1);
        let seen = sighted.seen(Means::Read);
        assert_eq!((seen.programs.len(), seen.libraries.len(), seen.lost), (MOST, MOST, 10));
    }

    #[test]
    fn what_is_seen_bears_the_path_of_its_program_whichever_came_first() {
        let mut sighted = Sighted::default();
        sighted.take(&event(kind::LIBRARY, 7, 8, ""), Some("/lib/libc.so.6".into()));
        sighted.take(&event(kind::MODULE, 7, 9, "numpy"), Some("/v/site-packages".into()));
        sighted.take(&event(kind::PROGRAM, 7, 0, ""), Some("/usr/bin/python3.11".into()));
        sighted.take(&event(kind::PROGRAM, 6, 0, ""), Some("/usr/bin/older".into()));
        sighted.take(&event(kind::LIBRARY, 7, 5, ""), None);
        for (id, executions) in sighted.counted() {
            *executions = if id.inode == 7 { 3 } else { 0 };
        }
        let seen = sighted.seen(Means::Read);
        assert_eq!(
            seen.programs,
            [SeenProgram { path: "/usr/bin/python3.11".into(), executions: 3 }],
            "one that was there before is none that was executed"
        );
        assert_eq!(seen.libraries[0].by, "/usr/bin/python3.11");
        let package = &seen.packages[0];
        assert_eq!((package.site_inode, package.name.as_str()), (Some(9), "numpy"));
        assert_eq!((seen.lost, sighted.keys.len()), (1, 5), "a path without its beginning");
    }
}
