//! A job's own cgroup files: what of them is its, and what they counted before it was seen.

use crate::{
    cgroup::{pace::Pace, place::Places, read::CgroupReader, seldom::Moves},
    model::{
        group::{Group, Value},
        tables::{CPU, Cpu, FAULT, Fault, MEMORY, SCHED, Sched},
    },
};
use tracer_ebpf::{
    handle::{Handle, Number},
    table::Kind,
};

/// Readings after which a job's directories and limits are taken for settled.
const SETTLING: u32 = 2;

/// The files of a job.
#[derive(Default)]
pub struct Files {
    /// Whether they counted before the job was: the first reading is then the zero of the others.
    pub began_before: bool,
    reader: Option<CgroupReader>,
    /// Readings so far: limits are set, and directories made, after the first directory.
    readings: u32,
    /// When to look whether directories were made later than that.
    looks: Option<Pace>,
    has_block: Option<bool>,
    /// What the interval to come may not tell, for it came before.
    before: Before,
}

/// What a reading tells that came before the job, or elsewhere.
#[derive(Clone, Copy, Default)]
struct Before {
    stalls: bool,
    throttled: bool,
    kills: bool,
}

impl Files {
    /// Files that counted before the job was.
    pub fn of_before() -> Self {
        Self { began_before: true, ..Self::default() }
    }

    /// Whether the kernel keeps block I/O of the job's cgroups apart; `None` before the first reading.
    pub fn has_block(&self) -> Option<bool> {
        self.has_block
    }

    /// Closes them: the job has ended, and more may end than files can be open.
    pub fn close(&mut self) {
        self.reader.iter_mut().for_each(CgroupReader::close);
    }

    /// Begins anew: directories were made.
    pub fn look_again(&mut self) {
        (self.readings, self.began_before) = (0, false);
    }

    /// They are another job's from here on; what the kernel keeps apart is known of both.
    pub fn hand_over(&mut self) -> Self {
        let rest = Self { has_block: self.has_block, ..Self::default() };
        std::mem::replace(self, rest)
    }

    /// Adds `job_memory` and `job_cpu` at `now_ns` (CLOCK_MONOTONIC), from the directories `places`; none without a
    /// directory. `probed` are the groups of the probes, which lack what this kernel cannot tell them, and by which its
    /// tasks did as `moves` says.
    pub fn read(
        &mut self,
        places: impl FnOnce() -> Places,
        probed: &mut Vec<Group>,
        moves: Moves,
        now_ns: u64,
    ) {
        let is_first = self.readings == 0;
        let mut moved = false;
        let settles = self.readings < SETTLING;
        let looks = self.looks.get_or_insert_with(|| Pace::hardly(now_ns));
        let looked = (settles || looks.is_due(now_ns)).then(places);
        if looked.is_some() {
            looks.note_read(now_ns);
        }
        // One that has gone since is the job's on its way out: what is known of it stays.
        let has_new = |places: &Places| match &self.reader {
            Some(reader) => reader.lacks_one_of(places),
            None => !places.0.is_empty(),
        };
        if let Some(places) = looked.filter(|places| settles || has_new(places)) {
            self.readings += u32::from(settles);
            if !places.0.is_empty() {
                self.has_block = Some(has_block(&places));
            }
            let fresh = (!places.0.is_empty()).then(|| CgroupReader::of_job(&places, now_ns));
            moved = match (&self.reader, &fresh) {
                (Some(before), Some(now)) => !before.throttles_as(now),
                // Of a quota that others share the job's time is but a part.
                (None, Some(now)) => !now.throttles_alone(),
                _ => false,
            };
            self.reader = fresh;
        }
        let is_before = is_first && self.began_before;
        // More than one reading may come before an interval is told.
        let throttled = is_before || moved || self.before.throttled;
        self.before = Before { stalls: is_before, throttled, kills: false };
        if let Some(reader) = &mut self.reader {
            reader.set_now(now_ns, moves);
            self.before.kills = reader.add_oom_kills(probed) && is_before;
            probed.extend(reader.read());
        }
    }

    /// Takes out of `groups`, an interval, what came before.
    pub fn leave_out(&mut self, groups: &mut [Group]) {
        let before = std::mem::take(&mut self.before);
        for group in groups {
            if group.is(&MEMORY) && before.stalls {
                let counters = group.measurement.fields.iter().zip(&mut group.values);
                counters
                    .filter(|(field, value)| field.kind == Kind::Counter && value.is_some())
                    .for_each(|(_, value)| *value = Some(Value::Number(0)));
            } else if group.is(&CPU) && before.throttled {
                group.set(Cpu::throttled_ns, group.number(Cpu::throttled_ns).map(|_| 0));
            } else if group.is(&FAULT) && before.kills {
                group.set(Fault::oom_kills, group.number(Fault::oom_kills).map(|_| 0));
            }
        }
    }
}

/// What a job's tasks did so far by `probed`, the groups of the probes, which count all of them if `is_counted`, and see all
/// ends if `sees_ends`.
pub fn moves(probed: &[Group], is_counted: bool, sees_ends: bool) -> Moves {
    let Some(sched) = probed.iter().find(|group| group.is(&SCHED)) else { return Moves::default() };
    let sum = |fields: &[Handle<Number>]| {
        fields.iter().try_fold(0, |sum: u64, field| Some(sum.wrapping_add(sched.number(*field)?)))
    };
    let signs = [Sched::forks, Sched::exits, Sched::thread_exits, Sched::execs];
    let tells_tasks = sees_ends && signs.iter().all(|field| sched.number(*field).is_some());
    let tasks = signs.iter().filter_map(|field| sched.number(*field)).fold(0, u64::wrapping_add);
    // One that leaves its CPU counts there, one that stays on it has more time.
    let all =
        [Sched::on_cpu_ns, Sched::switches_voluntary, Sched::switches_involuntary, Sched::forks];
    Moves { tasks, tells_tasks, all: sum(&all).filter(|_| is_counted) }
}

/// Whether the kernel charges block I/O to the cgroups at `places`: under v2 those below a cgroup that has the io
/// controller enabled.
fn has_block(places: &Places) -> bool {
    let v2 = || places.v2().is_some_and(|place| place.directory.join("io.stat").exists());
    places.v1("blkio").is_some() || v2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_that_comes_or_ends_is_a_sign_where_all_are_seen() {
        let signs = [Sched::forks, Sched::exits, Sched::thread_exits, Sched::execs];
        let mut sched = Group::unknown(&SCHED, Vec::new());
        signs.iter().for_each(|sign| sched.set(*sign, 1));
        let of = |sched: &Group, sees_ends| moves(std::slice::from_ref(sched), true, sees_ends);
        let before = of(&sched, true);
        assert!(before.tells_tasks && !of(&sched, false).tells_tasks);
        for sign in signs {
            let mut now = sched.clone();
            now.set(sign, 2);
            assert_eq!(of(&now, true).tasks, before.tasks + 1, "{sign:?}");
            now.set(sign, None::<u64>);
            assert!(!of(&now, true).tells_tasks, "{sign:?} is unknown");
        }
        assert!(!moves(&[], true, true).tells_tasks);
    }
}
