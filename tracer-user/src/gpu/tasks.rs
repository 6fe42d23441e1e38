//! What a job's tasks did in a stretch of time, from two looks at the kernel's counters. Pure.

use super::waits::Waits;
use crate::model::{
    blocks::{io_ns, on_files_ns},
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
    /// Blocked on I/O, but not by a major fault; on anything where the kernel does not tell causes.
    pub blocked: Waits,
    /// What of `blocked` is for what; `None` where the kernel does not tell causes.
    pub calls: Option<Calls>,
    /// Blocked on something that is not I/O, or not known to be.
    pub otherwise: Waits,
    /// Blocked by a major fault; `None` where the kernel does not tell, they are in `blocked` then.
    pub faulting: Option<Waits>,
    /// Asleep; `None` where the kernel does not tell causes.
    pub asleep: Option<Asleep>,
}

/// Blocks on I/O that ended in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Calls {
    /// Reading, writing, until it is stored, and for metadata.
    pub of_ns: [u64; 4],
    /// All blocks on I/O; no less than these.
    pub all_ns: u64,
}

impl Calls {
    /// What of `part_ns` of all is for each.
    pub fn share(&self, part_ns: u64) -> [u64; 4] {
        let part = |ns: u64| u128::from(part_ns) * u128::from(ns) / u128::from(self.all_ns.max(1));
        self.of_ns.map(|ns| part(ns) as u64)
    }
}

/// Sleep that ended in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Asleep {
    /// Until any of several files is ready: sockets and what drivers tell.
    pub poll: Waits,
    /// In calls for sockets.
    pub sockets: Waits,
    /// For anything else.
    pub elsewhere: Waits,
    /// How many tasks were asleep in poll or on sockets on average, in millionths, whatever part this is of.
    pub network_ppm: u64,
    /// The same for anything else.
    pub elsewhere_ppm: u64,
}

impl TaskTimes {
    /// What came between two looks, `span_ns` apart, at the groups of one job; `None` where this kernel,
    /// or one of the looks, does not tell.
    pub fn between(older: &[Group], newer: &[Group], span_ns: u64) -> Option<Self> {
        let of = |groups: &[Group], table| groups.iter().find(|group| group.is(table)).cloned();
        let since = |table| Some(of(newer, table)?.since(&of(older, table)?));
        let sched = since(&SCHED)?;
        let waits = |hist: &Hist| Waits::of(hist, span_ns);
        let faults = since(&FAULT);
        let faults = faults.as_ref().and_then(|fault| fault.hist(Fault::major_wait_ns));
        let faulting = faults.map(waits);
        let ended = sched.hist(Sched::blocked_ns)?;
        let all = waits(ended);
        let causes = on_files_ns(&sched).zip(io_ns(&sched));
        let io_ns = causes.map_or(ended.sum, |(_, io_ns)| io_ns.min(ended.sum));
        let io = all.part(io_ns, ended.sum);
        Some(Self {
            on_cpu_ns: sched.number(Sched::on_cpu_ns)?,
            run_queue: waits(sched.hist(Sched::run_queue_wait_ns)?),
            // A task that a major fault blocks is blocked, and charged as that, too.
            blocked: io.less(faulting.unwrap_or_default()),
            calls: causes.map(|(of_ns, _)| {
                let faults_ns = faults.map_or(0, |hist| hist.sum);
                let told_ns = of_ns.into_iter().fold(0, u64::saturating_add);
                Calls { of_ns, all_ns: io_ns.saturating_sub(faults_ns).max(told_ns) }
            }),
            otherwise: all.less(io),
            faulting,
            asleep: causes.and_then(|_| Asleep::of(&sched, span_ns)),
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
        let asleep = |of: Asleep| Asleep {
            poll: waits(of.poll),
            sockets: waits(of.sockets),
            elsewhere: waits(of.elsewhere),
            ..of
        };
        Self {
            on_cpu_ns: scaled(self.on_cpu_ns),
            run_queue: waits(self.run_queue),
            blocked: waits(self.blocked),
            calls: self.calls,
            otherwise: waits(self.otherwise),
            faulting: self.faulting.map(waits),
            asleep: self.asleep.map(asleep),
        }
    }
}

impl Asleep {
    fn of(sched: &Group, span_ns: u64) -> Option<Self> {
        let [poll, sockets] = [
            (Sched::sleep_poll_ns, Sched::sleep_poll_waits),
            (Sched::sleep_socket_ns, Sched::sleep_socket_waits),
        ]
        .map(|(ns, count)| Some((sched.number(ns)?, sched.number(count)?)));
        let (poll, sockets) = (poll?, sockets?);
        let all = sched.hist(Sched::sleep_ns)?;
        let elsewhere = (
            all.sum.saturating_sub(poll.0).saturating_sub(sockets.0),
            all.count().saturating_sub(poll.1).saturating_sub(sockets.1),
        );
        let waits = |(ns, count)| Waits::alike(ns, count, span_ns);
        let ppm = |ns: u64| {
            let ppm = u128::from(ns) * 1_000_000 / u128::from(span_ns.max(1));
            u64::try_from(ppm).unwrap_or(u64::MAX)
        };
        Some(Self {
            poll: waits(poll),
            sockets: waits(sockets),
            elsewhere: waits(elsewhere),
            network_ppm: ppm(poll.0.saturating_add(sockets.0)),
            elsewhere_ppm: ppm(elsewhere.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const S: u64 = 1_000 * MS;

    #[test]
    fn what_major_faults_blocked_counts_once() {
        let groups = |blocked: &[(u64, u64)], faults: Option<&[(u64, u64)]>| {
            let mut sched = Group::unknown(&SCHED, Vec::new());
            let mut fault = Group::unknown(&FAULT, Vec::new());
            sched.set(Sched::on_cpu_ns, 5 * MS);
            sched.set_hist(Sched::run_queue_wait_ns, Hist::of(&[]));
            sched.set_hist(Sched::blocked_ns, Hist::of(blocked));
            faults.iter().for_each(|faults| fault.set_hist(Fault::major_wait_ns, Hist::of(faults)));
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
