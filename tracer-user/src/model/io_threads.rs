//! What a job did to files by thread and by program, where it was asked for. For the record and its reports alone: a
//! thread's name is its program's to choose.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

/// Threads that a record lists by each measure, and programs.
pub const MOST: usize = 64;

macro_rules! counts {
    ($($(#[$help:meta])* $name:ident),* $(,)?) => {
        /// Operations, times and bytes. They only grow.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(default)]
        pub struct IoCounts {
            $($(#[$help])* pub $name: u64,)*
        }

        impl IoCounts {
            /// Names of all of them, in the order of the record.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// Adds `more`.
            pub fn add(&mut self, more: &Self) {
                $(self.$name = self.$name.saturating_add(more.$name);)*
            }

            /// What came since `older`.
            #[must_use]
            pub fn since(&self, older: &Self) -> Self {
                Self { $($name: self.$name.saturating_sub(older.$name)),* }
            }
        }
    };
}

counts! {
    /// Operations on files and paths, failed ones included; none of those on pipes, sockets and devices.
    ops,
    /// Duration of all of them, nanoseconds as all times.
    time_ns,
    /// Of those during which the thread gave its CPU away.
    waited_ns,
    /// Of those on names and attributes: open, close, stat and their like.
    metadata_ns,
    /// Bytes read, copies included.
    read_bytes,
    /// Bytes written.
    written_bytes,
}

impl IoCounts {
    /// Bytes read and written.
    pub fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.written_bytes)
    }
}

/// What threads are put in order by.
const MEASURES: [fn(&IoCounts) -> u64; 2] = [|counts| counts.time_ns, IoCounts::bytes];

/// A thread while it executed one program.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadUse {
    /// The node; empty in a record of one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// What it was called when it used a file first: its program, unless it has a name of its own.
    pub program: String,
    /// Its process.
    pub process: u32,
    /// Its own number.
    pub thread: u32,
    /// What it did.
    #[serde(flatten)]
    pub counts: IoCounts,
}

/// All threads of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramUse {
    /// The name.
    pub program: String,
    /// How many threads there were.
    pub threads: u64,
    /// What they did.
    #[serde(flatten)]
    pub counts: IoCounts,
}

/// Those of a job that are listed. What is in no program is what `job_io` has beyond them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IoThreads {
    /// The threads that took longest and those that moved most, those that took longest first.
    pub threads: Vec<ThreadUse>,
    /// The programs that took longest, in the same order.
    pub programs: Vec<ProgramUse>,
}

impl IoThreads {
    /// The largest of all.
    pub fn largest(threads: Vec<ThreadUse>, mut programs: Vec<ProgramUse>) -> Self {
        let mut kept: Vec<ThreadUse> = Vec::new();
        let mut rest = threads;
        for measure in MEASURES {
            rest.sort_by(|one, other| {
                measure(&other.counts).cmp(&measure(&one.counts)).then_with(|| one.cmp(other))
            });
            let is_some = |thread: &&ThreadUse| measure(&thread.counts) > 0;
            let others = rest.split_off(rest.iter().take(MOST).take_while(is_some).count());
            kept.append(&mut rest);
            rest = others;
        }
        kept.sort_by_cached_key(|thread| (Reverse(thread.counts.time_ns), thread.clone()));
        programs.sort_by_cached_key(|program| (Reverse(program.counts.time_ns), program.clone()));
        programs.truncate(MOST);
        Self { threads: kept, programs }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty() && self.programs.is_empty()
    }

    /// Adds another node's, or a later time's.
    pub fn merge(&mut self, other: &Self) {
        for more in &other.threads {
            let whose =
                |of: &ThreadUse| (of.host.clone(), of.process, of.thread, of.program.clone());
            match self.threads.iter_mut().find(|known| whose(known) == whose(more)) {
                Some(known) => known.counts.add(&more.counts),
                None => self.threads.push(more.clone()),
            }
        }
        for more in &other.programs {
            match self.programs.iter_mut().find(|known| known.program == more.program) {
                Some(known) => {
                    known.counts.add(&more.counts);
                    known.threads = known.threads.saturating_add(more.threads);
                }
                None => self.programs.push(more.clone()),
            }
        }
        self.threads.sort_by_cached_key(|thread| (Reverse(thread.counts.time_ns), thread.clone()));
        self.programs
            .sort_by_cached_key(|program| (Reverse(program.counts.time_ns), program.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(thread: u32, time_ns: u64, read_bytes: u64) -> ThreadUse {
        let counts = IoCounts { ops: 1, time_ns, read_bytes, ..IoCounts::default() };
        ThreadUse { program: "p".into(), process: 1, thread, counts, ..ThreadUse::default() }
    }

    #[test]
    fn those_that_took_longest_and_those_that_moved_most_are_kept() {
        let all = (1..=200).map(|at| thread(at, at.into(), 1_000 - u64::from(at))).collect();
        let told = IoThreads::largest(all, Vec::new());
        let numbers: Vec<_> = told.threads.iter().map(|thread| thread.thread).collect();
        let expected: Vec<_> = (137..=200).rev().chain((1..=64).rev()).collect();
        assert_eq!(numbers, expected);
    }

    #[test]
    fn merging_adds_up_in_any_order() {
        let program = |threads, time_ns| ProgramUse {
            program: "p".into(),
            threads,
            counts: IoCounts { time_ns, ..IoCounts::default() },
        };
        let one = IoThreads { threads: vec![thread(1, 5, 5)], programs: vec![program(1, 5)] };
        let other = IoThreads {
            threads: vec![thread(2, 9, 0), thread(1, 2, 1)],
            programs: vec![program(2, 11)],
        };
        let (mut both, mut reverse) = (one.clone(), other.clone());
        both.merge(&other);
        reverse.merge(&one);
        assert_eq!(both, reverse);
        let told: Vec<_> =
            both.threads.iter().map(|of| (of.thread, of.counts.ops, of.counts.time_ns)).collect();
        assert_eq!(told, [(2, 1, 9), (1, 2, 7)]);
        assert_eq!(both.programs, [program(3, 16)]);
        // Of another node they are others.
        let mut elsewhere = one.clone();
        elsewhere.threads[0].host = "n2".into();
        both.merge(&elsewhere);
        assert_eq!(both.threads.len(), 3);
    }
}
