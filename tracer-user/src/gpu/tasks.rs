//! What a job's tasks did in a stretch of time, from two looks at the kernel's counters. Pure.

use tracer_ebpf::loglinear::bucket_low;

use crate::model::{
    group::Group,
    hist::Hist,
    tables::{FAULT, Fault, SCHED, Sched},
};

/// What a job's tasks did in a stretch of time, all of them added up.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TaskTimes {
    /// On a CPU.
    pub on_cpu_ns: u64,
    /// Runnable, waiting for a CPU.
    pub run_queue: Waits,
    /// Blocked in the kernel, but not by a major fault.
    pub blocked: Waits,
    /// Blocked by a major fault; `None` where the kernel does not tell, they are in `blocked` then.
    pub faulting: Option<Waits>,
}

/// Waits that ended in a stretch of time: the kernel charges a wait when it ends, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Waits {
    /// What of them lay in the stretch.
    pub within_ns: u64,
    /// What of them lay before it.
    pub before_ns: u64,
    /// How long before its begin the earliest of them began, at most.
    pub reach_ns: u64,
}

impl TaskTimes {
    /// What came between two looks, `span_ns` apart, at the groups of one job; `None` where this kernel,
    /// or one of the looks, does not tell.
    pub fn between(older: &[Group], newer: &[Group], span_ns: u64) -> Option<Self> {
        let of = |groups: &[Group], table| groups.iter().find(|group| group.is(table)).cloned();
        let since = |table| Some(of(newer, table)?.since(&of(older, table)?));
        let sched = since(&SCHED)?;
        let waits = |hist: &Hist| Waits::of(hist, span_ns);
        let faulting = since(&FAULT).and_then(|fault| fault.hist(Fault::major_wait_ns).map(waits));
        Some(Self {
            on_cpu_ns: sched.number(Sched::on_cpu_ns)?,
            run_queue: waits(sched.hist(Sched::run_queue_wait_ns)?),
            // A task that a major fault blocks is blocked, and charged as that, too.
            blocked: waits(sched.hist(Sched::blocked_ns)?).less(faulting.unwrap_or_default()),
            faulting,
        })
    }

    /// The part of `part_ns` of a stretch of `whole_ns`: the tasks are taken to have done the same all the
    /// time. What lay before the stretch is in no part of it.
    pub fn part(&self, part_ns: u64, whole_ns: u64) -> Self {
        let scaled = |ns: u64| {
            if part_ns >= whole_ns {
                return ns;
            }
            (u128::from(ns) * u128::from(part_ns) / u128::from(whole_ns)) as u64
        };
        let waits = |of: Waits| Waits { within_ns: scaled(of.within_ns), ..Waits::default() };
        Self {
            on_cpu_ns: scaled(self.on_cpu_ns),
            run_queue: waits(self.run_queue),
            blocked: waits(self.blocked),
            faulting: self.faulting.map(waits),
        }
    }
}

impl Waits {
    /// The waits of `ended`, all of which ended in a stretch of `span_ns`.
    ///
    /// When in it each ended is not known, so every moment is as likely: on the mean a wait of length `l`
    /// reaches `l²/2s` before a stretch of `s` where it is shorter, `l - s/2` where it is longer. Lengths
    /// are the buckets' middles, moved so that they add up to the exact sum.
    pub fn of(ended: &Hist, span_ns: u64) -> Self {
        let middle = |index: usize| (bucket_low(index) as f64 + ended.bound(index) as f64) / 2.0;
        let sum: f64 = ended.buckets().map(|(index, count)| middle(index) * count as f64).sum();
        let exact = if sum > 0.0 { ended.sum as f64 / sum } else { 1.0 };
        let span = span_ns as f64;
        let before = |(index, count): (usize, u64)| {
            let (low, high) = (bucket_low(index) as f64, ended.bound(index) as f64);
            let length = (middle(index) * exact).clamp(low.min(high), high);
            let before = if length <= span && span > 0.0 {
                length * length / (2.0 * span)
            } else {
                length - span / 2.0
            };
            before * count as f64
        };
        let before_ns = (ended.buckets().map(before).sum::<f64>() as u64).min(ended.sum);
        let longest = ended.buckets().last().map_or(0, |(index, _)| ended.bound(index));
        Self { within_ns: ended.sum - before_ns, before_ns, reach_ns: longest }
    }

    fn less(self, other: Self) -> Self {
        Self {
            within_ns: self.within_ns.saturating_sub(other.within_ns),
            before_ns: self.before_ns.saturating_sub(other.before_ns),
            reach_ns: self.reach_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const S: u64 = 1_000 * MS;

    fn hist(waits: &[(u64, u64)]) -> Hist {
        let mut hist = Hist::default();
        for (length, count) in waits {
            (0..*count).for_each(|_| hist.record(*length));
        }
        hist
    }

    #[test]
    fn a_wait_reaches_before_the_stretch_in_which_it_ended() {
        for (what, waits, before_ms, reach_ms) in [
            ("none", &[][..], 0, 0),
            ("reads of 200 µs: next to nothing of them", &[(MS / 5, 4_000)], 0, 0),
            ("waits of 100 ms", &[(100 * MS, 9)], 45, 100),
            ("half a second: a quarter of it, on the mean", &[(S / 2, 1)], 125, 500),
            ("as long as the stretch", &[(S, 1)], 500, 1_000),
            (
                "five seconds: they ended half a second into it, on the mean",
                &[(5 * S, 1)],
                4_500,
                5_000,
            ),
            ("eight tasks", &[(5 * S, 8)], 36_000, 5_000),
            ("one long and many short ones", &[(5 * S, 1), (MS, 300)], 4_500, 5_000),
        ] {
            let hist = hist(waits);
            let got = Waits::of(&hist, S);
            assert_eq!(got.within_ns + got.before_ns, hist.sum, "{what}");
            let near = |got: u64, wanted_ms: u64| got.abs_diff(wanted_ms * MS) <= 2 * MS + got / 10;
            assert!(near(got.before_ns, before_ms), "{what}: {got:?}");
            assert!(near(got.reach_ns, reach_ms), "{what}: {got:?}");
        }
        let one = Waits::of(&hist(&[(5 * S + 7, 1)]), S);
        assert_eq!(one.before_ns, 4_500 * MS + 7, "a single wait is known to the nanosecond");
        assert_eq!(Waits::of(&hist(&[(7, 1)]), 0).within_ns, 0, "no time, nothing in it");
    }

    #[test]
    fn what_major_faults_blocked_counts_once() {
        let groups = |blocked: &[(u64, u64)], faults: Option<&[(u64, u64)]>| {
            let mut sched = Group::unknown(&SCHED, Vec::new());
            let mut fault = Group::unknown(&FAULT, Vec::new());
            sched.set(Sched::on_cpu_ns, 5 * MS);
            sched.set_hist(Sched::run_queue_wait_ns, hist(&[]));
            sched.set_hist(Sched::blocked_ns, hist(blocked));
            faults.iter().for_each(|faults| fault.set_hist(Fault::major_wait_ns, hist(faults)));
            vec![sched, fault]
        };
        let zero = groups(&[], Some(&[]));
        let both = groups(&[(MS, 10), (2 * MS, 10)], Some(&[(2 * MS, 10)]));
        let times = TaskTimes::between(&zero, &both, S).unwrap();
        assert!(times.blocked.within_ns.abs_diff(10 * MS) < MS, "{times:?}");
        assert!(times.faulting.unwrap().within_ns.abs_diff(20 * MS) < MS, "{times:?}");
        let untold = TaskTimes::between(&zero, &groups(&[(MS, 30)], None), S).unwrap();
        assert_eq!(untold.faulting, None);
        assert!(untold.blocked.within_ns.abs_diff(30 * MS) < MS, "{untold:?}");
        let unknown = vec![Group::unknown(&SCHED, Vec::new())];
        assert_eq!(TaskTimes::between(&zero, &unknown, S), None);
        assert_eq!(TaskTimes::between(&[], &both, S), None);
    }

    #[test]
    fn a_part_of_the_stretch_has_its_part() {
        let waits = Waits { within_ns: 8 * MS, before_ns: S, reach_ns: S };
        let whole = TaskTimes { on_cpu_ns: 100, blocked: waits, ..TaskTimes::default() };
        let part = whole.part(S / 4, S);
        assert_eq!(
            (part.on_cpu_ns, part.blocked.within_ns, part.blocked.before_ns),
            (25, 2 * MS, 0)
        );
        assert_eq!(whole.part(2 * S, S).on_cpu_ns, 100, "no more than there was");
    }
}
