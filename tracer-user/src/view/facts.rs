//! The run's values as the summary's parts ask for them. `None` is unknown and stays so; a share is
//! known only where all of its parts are.

use tracer_ebpf::handle::{Handle, Histogram, Number};

use super::{
    demand::Demand,
    disk::Disk,
    file_wait::FileWait,
    node_use::{NodeUse, millicores},
    request::Request,
};
use crate::{
    base::{text, units::UNKNOWN},
    model::{
        blocks::io_ns,
        gaps::{NO_AGENT, NO_SLOT},
        group::Group,
        held::{core_time_ns, cores_on_average},
        hist::Hist,
        needed::{LOWERED, Needed},
        tables::{CPU, Cpu, Fault, Memory, NET, Net, SCHED, SELF, Sched},
        totals::RunTotals,
    },
};

/// From this share of the time on, waiting for a CPU hides what else there is. A few percent are normal on any node.
pub(crate) const WAITED: f64 = 0.15;
/// Columns of a protocol family's name.
const MAX_FAMILY: usize = 12;
/// Waits of one cause.
#[derive(Clone, Copy)]
pub struct Waited {
    /// Their time.
    pub ns: u64,
    /// Their number.
    pub count: u64,
}

impl Waited {
    /// How long each took, on the mean.
    pub fn mean_ns(self) -> u64 {
        self.ns / self.count.max(1)
    }
}

/// What went through the sockets of one protocol family.
pub struct Traffic {
    /// The family, made harmless.
    pub family: String,
    /// Bytes sent.
    pub sent: Option<u64>,
    /// Bytes received.
    pub received: Option<u64>,
    /// TCP segments sent again.
    pub retransmits: Option<u64>,
}

impl Traffic {
    /// Bytes both ways, as far as known.
    pub fn bytes(&self) -> u64 {
        self.sent.unwrap_or(0).saturating_add(self.received.unwrap_or(0))
    }
}

/// What the summary is made of.
pub struct Facts<'a> {
    /// The run itself, for what needs no arithmetic.
    pub totals: &'a RunTotals,
    /// Whether texts may hold more than ASCII.
    pub unicode: bool,
    /// Time on CPU, all tasks added up, like the four below.
    pub on_cpu_ns: Option<u64>,
    /// Runnable but without a CPU.
    pub waiting_ns: Option<u64>,
    /// Blocked in the kernel.
    pub blocked_ns: Option<u64>,
    /// The part of `blocked_ns` that is I/O; all of it where the kernel does not tell causes.
    pub io_ns: Option<u64>,
    /// The rest of it; `None` where the kernel does not tell causes.
    pub otherwise_ns: Option<u64>,
    /// The part of `io_ns` that major faults caused.
    pub major_ns: Option<u64>,
    /// Asleep: idle helpers and waiting parents too, so never a share of anything.
    pub asleep_ns: Option<u64>,
    /// Cores it may use, on average, in thousandths.
    pub held_millicores: Option<u64>,
    /// Whether they were others at other times.
    pub has_held_others: bool,
    /// Devices and operations with any request, by device.
    pub disks: Vec<Disk<'a>>,
    /// Families of the network with any traffic.
    pub traffic: Vec<Traffic>,
    /// Waits for file systems, the longest first.
    pub files: Vec<FileWait<'a>>,
    /// When it began to be counted, nanoseconds since the Unix epoch; 0: that is unknown.
    pub(crate) begin_ns: u64,
    /// What its scheduler was asked for; nothing of a run.
    pub(crate) request: Request,
    /// What each of its nodes used at its most; a run has one.
    pub(crate) nodes: Vec<NodeUse>,
    /// How evenly its nodes, or its tasks, computed, where there are several.
    pub balance: Option<Balance>,
    /// Its memory, where that grew all the time.
    pub(crate) growth: Option<Growth>,
    /// Cores that it could have used; of a run as if it had done the same all the time, until its course is told.
    pub(crate) demand: Option<Demand>,
}

/// Memory that grew all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Growth {
    /// What it had in the first column of time.
    pub from_bytes: u64,
    /// What it had at its peak.
    pub to_bytes: u64,
}

/// How evenly several parts of a job computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Balance {
    /// What a part is: `node`, `task`.
    pub what: &'static str,
    /// How many there are.
    pub parts: u64,
    /// The one with the most time on CPU, made harmless.
    pub busiest: String,
    /// Its time.
    pub most_ns: u64,
    /// The mean of all.
    pub mean_ns: u64,
}

impl Balance {
    /// What the busiest did beyond the mean, as a share of its own time.
    pub fn beyond(&self) -> f64 {
        1.0 - self.mean_ns as f64 / self.most_ns.max(1) as f64
    }
}

impl<'a> Facts<'a> {
    /// Whether measurement `key` cannot be known here.
    pub fn is_unknown(&self, key: &str) -> bool {
        self.totals.unknown.iter().any(|unknown| unknown == key)
    }

    /// What is said of local disks where no requests to any are known: nothing, if nobody looked.
    pub fn no_disks(&self) -> &'static str {
        let RunTotals { stats, gaps, .. } = self.totals;
        let was_counted =
            stats.group(&SCHED).is_some_and(|group| group.values.iter().any(Option::is_some));
        let has_gaps = [NO_AGENT, NO_SLOT, "block"].iter().any(|what| gaps.of(what) > 0);
        match (stats.groups.is_empty() || self.is_unknown("block"), has_gaps, was_counted) {
            (true, ..) | (_, true, false) => UNKNOWN,
            (_, true, true) => "no requests to local disks seen while they were counted",
            _ => "no requests to local disks seen",
        }
    }

    /// The facts of a run; texts from outside are cleaned for a terminal that has `unicode` or not.
    pub fn new(totals: &'a RunTotals, unicode: bool) -> Self {
        let number = |field: Handle<Number>| totals.stats.group(field.measurement())?.number(field);
        let sum = |field: Handle<Histogram>| {
            totals.stats.group(field.measurement())?.hist(field).map(|hist| hist.sum)
        };
        let traffic = |group: &Group| Traffic {
            family: text::truncate(&text::clean(&group.tags[0], unicode), MAX_FAMILY),
            sent: group.number(Net::sent_bytes),
            received: group.number(Net::received_bytes),
            retransmits: group.number(Net::retransmits),
        };
        let blocked_ns = sum(Sched::blocked_ns);
        let told_ns = totals.stats.group(&SCHED).and_then(io_ns);
        let told_ns = told_ns.and_then(|told_ns| Some(told_ns.min(blocked_ns?)));
        let io_ns = told_ns.or(blocked_ns);
        let major_ns = sum(Fault::major_wait_ns);
        let held = totals.stats.group(&CPU);
        let held = held.and_then(|cpu| cores_on_average(cpu, totals.elapsed_ns));
        Self {
            totals,
            unicode,
            on_cpu_ns: number(Sched::on_cpu_ns),
            waiting_ns: sum(Sched::run_queue_wait_ns),
            blocked_ns,
            io_ns,
            otherwise_ns: told_ns.and_then(|told_ns| Some(blocked_ns? - told_ns)),
            // A fault that blocks now is in the one before it is in the other.
            major_ns: major_ns.map(|ns| io_ns.map_or(ns, |io_ns| ns.min(io_ns))),
            asleep_ns: sum(Sched::sleep_ns),
            held_millicores: held.map(|(cores, _)| cores),
            has_held_others: held.is_some_and(|(_, is_changed)| is_changed),
            disks: Disk::all(totals, unicode),
            traffic: totals.stats.groups(&NET).map(traffic).collect(),
            files: FileWait::all(totals, unicode),
            begin_ns: totals.info.start_wall_ns,
            request: Request::default(),
            nodes: vec![NodeUse::of(totals, false)],
            balance: None,
            growth: None,
            demand: Demand::of(totals, None),
        }
    }

    /// A number of one of the job's measurements without tags.
    pub fn number(&self, field: Handle<Number>) -> Option<u64> {
        self.totals.stats.group(field.measurement())?.number(field)
    }

    /// The tracing's own measurement.
    pub fn own(&self) -> Option<&'a Group> {
        self.totals.own.iter().find(|group| group.is(&SELF))
    }

    /// A number of it.
    pub fn number_of_own(&self, field: Handle<Number>) -> Option<u64> {
        self.own()?.number(field)
    }

    /// A histogram of one of the job's measurements without tags, where it has values.
    pub fn hist(&self, field: Handle<Histogram>) -> Option<&'a Hist> {
        self.totals.stats.group(field.measurement())?.hist(field).filter(|hist| hist.max > 0)
    }

    /// Waits of one cause: their time and their number.
    pub fn waited(&self, (ns, count): (Handle<Number>, Handle<Number>)) -> Option<Waited> {
        Some(Waited { ns: self.number(ns)?, count: self.number(count)? })
    }

    /// Time blocked on I/O, but not by major faults.
    pub fn io_without_faults_ns(&self) -> u64 {
        self.io_ns.unwrap_or(0).saturating_sub(self.major_ns.unwrap_or(0))
    }

    /// Time in which tasks ran or wanted to: on CPU, waiting for one or blocked, as far as known.
    pub fn busy_ns(&self) -> u64 {
        let parts = [self.on_cpu_ns, self.waiting_ns, self.blocked_ns];
        parts.iter().flatten().fold(0, |sum: u64, part| sum.saturating_add(*part))
    }

    /// Elapsed time in which scheduling was counted.
    pub fn counted_ns(&self) -> u64 {
        self.totals.counted_ns(self.nodes.len())
    }

    /// Whether that is too little of the job to say what cores were used for.
    pub fn is_hardly_counted(&self) -> bool {
        self.counted_ns() < self.request.took_ns.max(self.totals.elapsed_ns) / 2
    }

    /// Counted time in which surely every task slept: what even the sum of all busy time leaves.
    pub fn all_asleep_ns(&self) -> Option<u64> {
        let is_known = |ns: &Option<u64>| ns.is_some();
        let known = [self.on_cpu_ns, self.waiting_ns, self.blocked_ns].iter().all(is_known);
        known.then(|| self.counted_ns().saturating_sub(self.busy_ns()))
    }

    /// What the shares of time are shares of: the counted time, or all busy time where that is more.
    pub fn whole_ns(&self) -> u64 {
        self.counted_ns().max(self.busy_ns())
    }

    /// `ns` as a share of [`Facts::whole_ns`]; 0 where nothing is known.
    pub fn share(&self, ns: u64) -> f64 {
        ns as f64 / self.whole_ns().max(1) as f64
    }

    /// Whether its tasks waited for a CPU for a large part of the time.
    pub fn has_waited(&self) -> bool {
        self.share(self.waiting_ns.unwrap_or(0)) >= WAITED
    }

    /// `ns` as a share of the time, by which rules judge: much waiting for a CPU is left out, so that it hides no other
    /// cause.
    pub fn judged(&self, ns: u64) -> f64 {
        let waiting_ns = self.waiting_ns.filter(|_| self.has_waited()).unwrap_or(0);
        ns as f64 / self.whole_ns().saturating_sub(waiting_ns).max(1) as f64
    }

    /// What [`Facts::judged`] is a share of, in words.
    pub fn judged_name(&self) -> &'static str {
        if self.has_waited() {
            "the time in which it did not wait for a CPU"
        } else {
            self.whole_name()
        }
    }

    /// `ns` as a share of the time that its tasks lived, the sleep of each included.
    pub fn share_of_lives(&self, ns: u64) -> f64 {
        let lived = self.busy_ns().saturating_add(self.asleep_ns.unwrap_or(0));
        ns as f64 / lived.max(1) as f64
    }

    /// What [`Facts::share`] is a share of, in words.
    pub fn whole_name(&self) -> &'static str {
        if self.busy_ns() > self.counted_ns() { "its tasks' time" } else { "the time" }
    }

    /// Core time held, used or not.
    pub fn core_held_ns(&self) -> Option<u64> {
        let of_cores = || Some(core_time_ns(self.held_millicores?, self.totals.elapsed_ns));
        self.number(Cpu::held_ns).filter(|ns| *ns > 0).or_else(of_cores)
    }

    /// Peak of memory as a share of its limit; `None` also where that was lowered since.
    pub fn memory_share(&self) -> Option<f64> {
        let limit = self.number(Memory::limit_bytes)?;
        let peak = self.number(Memory::peak_bytes).filter(|_| !self.was_limit_lowered())?;
        Some(peak as f64 / limit as f64)
    }

    /// Whether its memory limit was lowered since most was charged, on the node where it is nearest.
    pub fn was_limit_lowered(&self) -> bool {
        let both = self.number(Memory::limit_bytes).zip(self.number(Memory::peak_bytes));
        both.is_some_and(|(limit, peak)| peak as f64 > limit as f64 * LOWERED)
    }

    /// Memory needed at the peak, without file cache, on the node that needed most.
    pub fn memory_needed(&self) -> Option<Needed> {
        self.nodes.iter().filter_map(|node| node.memory).reduce(Needed::most)
    }

    /// Tasks that the out-of-memory killer chose; 0 where none are known of.
    pub fn oom_kills(&self) -> u64 {
        self.number(Fault::oom_kills).unwrap_or(0)
    }

    /// Cores that it could have used on average, in thousandths.
    pub fn wanted_millicores(&self) -> Option<u64> {
        let wanted = self.demand.map(|demand| demand.wanted_ns);
        millicores(wanted.or(self.on_cpu_ns)?, self.counted_ns())
    }

    /// Cores that it could have used at its busiest moment, in thousandths.
    pub fn busiest_millicores(&self) -> u64 {
        let wanted = self.demand.map_or(0, |demand| demand.busiest_millicores);
        self.totals.peaks.millicores.max(wanted)
    }

    /// Cores busy on average, in thousandths.
    pub fn used_millicores(&self) -> Option<u64> {
        millicores(self.on_cpu_ns?, self.counted_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{gaps::SCHED as SHED, info::JobInfo, job::Job};

    #[test]
    fn disks_of_a_job_that_nobody_counted_are_unknown() {
        let said = |gap: &str, is_counted: bool| {
            let mut totals = RunTotals::new(Job::default(), JobInfo::default());
            let mut sched = Group::unknown(&SCHED, Vec::new());
            if is_counted {
                sched.set(Sched::on_cpu_ns, 5);
            }
            totals.stats.groups.push(sched);
            totals.gaps.add(gap, 1, 2);
            Facts::new(&totals, true).no_disks()
        };
        assert_eq!(said(NO_SLOT, false), UNKNOWN);
        assert_eq!(said(NO_AGENT, false), UNKNOWN);
        let partly = "no requests to local disks seen while they were counted";
        assert_eq!(said(NO_SLOT, true), partly);
        assert_eq!(said("block", true), partly);
        assert_eq!(said(SHED, true), "no requests to local disks seen");
    }
}
