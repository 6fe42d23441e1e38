//! `wait CAUSE COUNT MS [PATH]`: a known number of waits of one cause, of MS milliseconds each, by this
//! process, its threads and its children, which do nothing else: whoever makes them wait keeps a CPU busy
//! meanwhile. Reports `off_cpu_ns`, the time that they were neither on a CPU nor waiting for one in these
//! calls, by the kernel's own account, `apart_ns`, the same in calls before and after that can wait too,
//! `stolen_ns`, what of `off_cpu_ns` a host may have taken away, and `least_ns`, what was asked for.
//!
//! `wait list` prints the causes.

mod alone;
mod files;
mod held;
mod odd;
mod partners;
mod rings;

use std::{path::Path, time::Duration};

use jobtrace_tests::{account::stolen_ns, work::Work};

/// What to do.
struct Amount {
    /// Waits.
    count: u64,
    /// Length of each.
    time: Duration,
    /// The file, folder or cgroup where one is needed.
    path: String,
}

impl Amount {
    /// The whole that is asked for.
    fn least_ns(&self) -> u64 {
        self.count * self.time.as_nanos() as u64
    }

    fn path(&self) -> &Path {
        Path::new(&self.path)
    }
}

/// What was waited.
#[derive(Default)]
struct Waited {
    /// Off the CPU, in the calls meant.
    off_cpu_ns: u64,
    /// The same in others, which come before and after.
    apart_ns: u64,
    /// More facts, by name.
    facts: Vec<(&'static str, u64)>,
}

impl From<u64> for Waited {
    fn from(off_cpu_ns: u64) -> Self {
        Self { off_cpu_ns, ..Self::default() }
    }
}

/// A cause's name, and what waits for it.
type Cause = (&'static str, fn(&Amount) -> Waited);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut causes =
        [alone::CAUSES, rings::CAUSES, partners::CAUSES, held::CAUSES, files::CAUSES, odd::CAUSES]
            .into_iter()
            .flatten();
    if words[0] == "list" {
        causes.for_each(|(name, _)| println!("{name}"));
        return;
    }
    let mut work = Work::begin();
    let (_, wait) = causes
        .find(|(name, _)| *name == words[0])
        .unwrap_or_else(|| panic!("no cause is called {}", words[0]));
    let number = |index: usize| words[index].parse::<u64>().unwrap();
    let amount = Amount {
        count: number(1),
        time: Duration::from_millis(number(2)),
        path: words.get(3).cloned().unwrap_or_default(),
    };
    let stolen = stolen_ns();
    let waited = wait(&amount);
    work.fact("stolen_ns", stolen_ns().saturating_sub(stolen));
    work.fact("off_cpu_ns", waited.off_cpu_ns);
    work.fact("apart_ns", waited.apart_ns);
    work.fact("least_ns", amount.least_ns());
    for (name, value) in waited.facts {
        work.fact(name, value);
    }
    work.end();
}
