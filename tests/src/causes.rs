//! What a traced command waited for, by cause: the fields `sleep_<cause>_ns` and `blocked_<cause>_ns` of
//! `job_sched`, and `job_wait` beside them.

use std::collections::BTreeMap;

use crate::{
    agree::Agreement,
    traced::{Traced, count_and_sum},
};

/// Number and nanoseconds of some waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// How many.
    pub count: u64,
    /// How long, all together.
    pub ns: u64,
}

impl std::ops::AddAssign for Waits {
    fn add_assign(&mut self, more: Self) {
        self.count += more.count;
        self.ns += more.ns;
    }
}

/// All waits of one command.
#[derive(Debug)]
pub struct Causes {
    /// By the names of the fields without their ends: `sleep_timer`, `blocked_read`.
    by_cause: BTreeMap<String, Waits>,
    /// Of `sleep_ns` and `blocked_ns`.
    states: [Waits; 2],
    /// Of `job_wait`, by call, file system and mount.
    by_file_system: BTreeMap<[String; 3], Waits>,
}

impl Causes {
    /// Those of `job`.
    pub fn of(job: &Traced) -> Self {
        let sched = job.json["sched"].as_object().expect("job_sched");
        let number = |name: String| sched[&name].as_u64().unwrap_or_else(|| panic!("no {name}"));
        let names = sched.keys().filter_map(|name| name.strip_suffix("_waits"));
        let by_cause = names.map(|name| {
            let waits =
                Waits { count: number(format!("{name}_waits")), ns: number(format!("{name}_ns")) };
            (name.to_owned(), waits)
        });
        let states = ["sleep_ns", "blocked_ns"].map(|state| {
            let (count, ns) = job.hist("sched", state);
            Waits { count, ns }
        });
        let groups = job.json["wait"].as_array().into_iter().flatten().map(|group| {
            let tag = |name: &str| group[name].as_str().unwrap_or_default().to_owned();
            let (count, ns) = count_and_sum(&group["blocked_ns"]);
            (["call", "fs", "mount"].map(tag), Waits { count, ns })
        });
        Self { by_cause: by_cause.collect(), states, by_file_system: groups.collect() }
    }

    /// Waits of `cause`: `sleep_timer`.
    pub fn of_cause(&self, cause: &str) -> Waits {
        *self.by_cause.get(cause).unwrap_or_else(|| panic!("no cause {cause} in {self:?}"))
    }

    /// All waits, asleep and blocked.
    pub fn all(&self) -> Waits {
        sum(self.states)
    }

    /// Waits in kinds of `call` for file systems that `chosen` picks by type and mount.
    pub fn for_files(&self, call: &str, chosen: impl Fn(&str, &str) -> bool) -> Waits {
        let all = self.by_file_system.iter();
        sum(all
            .filter(|([of, fs, mount], _)| of == call && chosen(fs, mount))
            .map(|(_, waits)| *waits))
    }

    /// The causes of sleeps are all sleeps, those of blocks all blocks, to the nanosecond; and what is filed
    /// by file system is what was blocked in calls on files, and perhaps what slept in them.
    pub fn add_up(&self, agree: &mut Agreement) {
        for (state, whole) in ["sleep_", "blocked_"].into_iter().zip(self.states) {
            let parts = self.by_cause.iter().filter(|(name, _)| name.starts_with(state));
            let parts = sum(parts.map(|(_, waits)| *waits));
            agree.exact(&format!("{state}…_ns, all causes"), parts.ns, whole.ns);
            agree.exact(&format!("{state}…_waits, all causes"), parts.count, whole.count);
        }
        let blocked = ["read", "write", "sync", "metadata"]
            .map(|call| self.of_cause(&format!("blocked_{call}")));
        let blocked = sum(blocked);
        let slept = sum(["sleep_other"].map(|cause| self.of_cause(cause)));
        let filed = sum(self.by_file_system.values().copied());
        let most = blocked.ns + slept.ns;
        agree.between("job_wait, blocked_ns of all", filed.ns, blocked.ns..=most);
        let most = blocked.count + slept.count;
        agree.between("job_wait, count of all", filed.count, blocked.count..=most);
    }

    /// At least 98 % of all waits are of `causes`, not counting `apart_ns` that the workload knows it waited
    /// for other things.
    pub fn are_mostly(&self, agree: &mut Agreement, causes: &[&str], apart_ns: u64) {
        let of_them = sum(causes.iter().map(|cause| self.of_cause(cause)));
        let all = self.all().ns;
        let least = all.saturating_sub(apart_ns) / 100 * 98;
        agree.between(&format!("{causes:?}, of all waits"), of_them.ns, least..=all);
    }

    /// A line for each cause that there was, for people.
    pub fn print(&self) {
        let some = |(name, waits): (String, &Waits)| {
            if waits.count > 0 {
                println!("     {name}: {} waits, {} ns", waits.count, waits.ns);
            }
        };
        self.by_cause.iter().map(|(name, waits)| (name.clone(), waits)).for_each(some);
        let files = self.by_file_system.iter();
        files.map(|(tags, waits)| (format!("{tags:?}"), waits)).for_each(some);
    }
}

/// All of them together.
pub fn sum(waits: impl IntoIterator<Item = Waits>) -> Waits {
    waits.into_iter().fold(Waits::default(), |mut all, one| {
        all += one;
        all
    })
}
