//! What each job did to each device, added up from readings. Pure: the time comes with the readings,
//! and whose a process is comes as an argument.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    claim::{Claims, Holder},
    energy::Energy,
    idle::Stretch,
    job::{JobDevices, Open},
    reading::{Busy, Counters, Device, DeviceReading, GpuReading, ProcessReading},
    used::{JobPart, Share, Used},
};
use crate::model::group::Group;

/// Readings further apart than this leave open who was on a device between them.
pub const MAX_GAP_NS: u64 = 5_000_000_000;
/// Makers whose devices schedulers hand out, where there are several: never the chip of a console.
const MAKERS: [&str; 2] = ["nvidia", "amd"];
/// Losses of a device that are said.
const MOST_LOSSES: u32 = 4;
/// What is said of a driver that is slower than that.
pub const SLOW: &str = "the GPU driver took more than 5 s to answer: GPU values have gaps";
/// A state older than this is unknown: the driver has not answered since.
pub const STALE_NS: u64 = 5_000_000_000;

/// Cumulative values of each job, which `K` names, on each device that it ever was on.
///
/// Whose a process is, is settled with each reading: at the next export it may have gone.
#[derive(Debug)]
pub struct Totals<K> {
    jobs: BTreeMap<K, JobDevices>,
    devices: BTreeMap<String, Seen<K>>,
    /// What each job was given.
    claims: BTreeMap<K, Claims>,
    /// Jobs on a device that they did not claim by numbers of their own: those mean something else.
    refuted: BTreeSet<K>,
    /// The maker whose devices a scheduler's numbers mean; `None`: whoever's there are.
    numbered: Option<&'static str>,
    /// When the last reading ended.
    read_ns: u64,
    notes: Vec<(Option<String>, String)>,
    /// Devices that were lost, by uuid: whether they are now, and how often.
    lost: BTreeMap<String, (bool, u32)>,
}

/// A device as last seen.
#[derive(Debug)]
struct Seen<K> {
    monotonic_ns: u64,
    energy: Option<Energy>,
    counters: Counters,
    on_it: BTreeSet<K>,
}

impl<K> Default for Totals<K> {
    fn default() -> Self {
        Self {
            jobs: BTreeMap::new(),
            devices: BTreeMap::new(),
            claims: BTreeMap::new(),
            refuted: BTreeSet::new(),
            numbered: None,
            read_ns: 0,
            notes: Vec::new(),
            lost: BTreeMap::new(),
        }
    }
}

impl<K: Holder> Totals<K> {
    /// Adds a reading; `owner` tells whose a process is. Readings come in the order of their times.
    pub fn add(&mut self, reading: &GpuReading, owner: impl Fn(&ProcessReading) -> Option<K>) {
        self.read_ns = reading.monotonic_ns;
        let is_there =
            |maker: &&str| reading.devices.iter().any(|read| read.device.vendor == *maker);
        // One that is lost for a while does not lend its numbers to another maker's.
        let is_meant = |maker: &&str| self.numbered == Some(*maker) || is_there(maker);
        self.numbered = MAKERS.into_iter().find(is_meant);
        let mut open: BTreeMap<K, Open> = BTreeMap::new();
        for device in &reading.devices {
            self.is_back(&device.device);
            self.add_device(reading, device, &owner, &mut open);
        }
        for (job, open) in open {
            self.jobs.entry(job).or_default().add(open);
        }
    }

    /// What each job was given, from now on: nothing but this.
    pub fn claim(&mut self, claims: BTreeMap<K, Claims>) {
        self.refuted.retain(|job| self.claims.get(job) == claims.get(job));
        self.claims = claims;
    }

    fn are_numbered(&self, vendor: &str) -> bool {
        self.numbered.is_none_or(|maker| maker == vendor)
    }

    /// Who was given `device`: of several by numbers that may be relative, none.
    fn claimed_by(&self, device: &Device) -> Vec<K> {
        let mut by: Vec<(&K, &Claims)> = self.claims.iter().collect();
        by.retain(|(job, claims)| {
            claims.have(device, |vendor| self.are_numbered(vendor)) && !self.refuted.contains(*job)
        });
        if by.iter().filter(|(_, claims)| claims.is_relative).count() > 1 {
            by.retain(|(_, claims)| !claims.is_relative);
        }
        by.into_iter().map(|(job, _)| job.clone()).collect()
    }

    fn add_device(
        &mut self,
        &GpuReading { monotonic_ns: now_ns, period_ns, .. }: &GpuReading,
        read: &DeviceReading,
        owner: impl Fn(&ProcessReading) -> Option<K>,
        open: &mut BTreeMap<K, Open>,
    ) {
        let mut parts: BTreeMap<K, JobPart> = BTreeMap::new();
        let mut others = false;
        for process in &read.processes {
            match owner(process) {
                Some(job) => parts.entry(job).or_default().add(process),
                None => others |= !process.is_idle_display(),
            }
        }
        let users = parts.values().filter(|part| part.is_working).count();
        // A device that the numbers cannot mean does not speak against them.
        if self.are_numbered(&read.device.vendor) {
            let is_refuted = |job: &K| {
                let own = self.claims.get(job);
                own.is_some_and(|own| own.is_relative && !own.have(&read.device, |_| true))
            };
            let refuted: Vec<K> = parts.keys().map(Holder::job).filter(is_refuted).collect();
            self.refuted.extend(refuted);
        }
        let mut holders = self.claimed_by(&read.device);
        holders.retain(|job| !parts.keys().any(|part| part != job && part.job() == *job));
        // Drivers that do not tell processes, or not those of a container: who alone has it uses it.
        let is_busy = read.busy.is_some_and(|busy| busy.sm_ppm > 0);
        let is_untold = users == 0 && !others && is_busy && holders.len() == 1;
        let is_told_by_process = read.processes.iter().any(|process| process.busy.is_some());
        let is_told = read.busy.is_some() && (read.processes.is_empty() || is_told_by_process);
        let absent = || if is_untold { JobPart::default() } else { JobPart::none(is_told) };
        for job in &holders {
            parts.entry(job.clone()).or_insert_with(absent);
        }
        let seen = self.devices.get(&read.device.uuid);
        let before_ns = seen.map(|seen| seen.monotonic_ns);
        let span_ns = before_ns.map_or(0, |before_ns| now_ns.saturating_sub(before_ns));
        let near = before_ns.is_some() && span_ns <= MAX_GAP_NS;
        let mut of_energy = seen.and_then(|seen| seen.energy);
        let energy = Energy::add(&mut of_energy, read, if near { span_ns } else { 0 });
        let grown = seen.map(|seen| read.counters.since(&seen.counters)).unwrap_or_default();
        for (job, part) in &parts {
            let of = self.jobs.entry(job.clone()).or_default();
            let used =
                of.devices.entry(read.device.uuid.clone()).or_insert_with(|| Used::new(read));
            let was_on_it = seen.is_some_and(|seen| seen.on_it.contains(job));
            let is_used = part.processes > 0 || is_untold;
            // Who works shares it with others that do; who has it or draws on it, with whoever has it too.
            let on_it = match (part.is_working, holders.contains(job)) {
                (true, _) => users,
                (false, true) => users + holders.len(),
                (false, false) => users + parts.len(),
            };
            let is_shared = others || on_it > 1;
            let span_ns = if near { span_ns } else { 0 };
            let energy = energy.filter(|_| near || was_on_it);
            let periods = (span_ns + period_ns / 2).checked_div(period_ns).unwrap_or(1).max(1);
            let share = Share { part, is_shared, is_used, span_ns, periods, energy };
            let busy = used.add(now_ns, read, &share);
            used.detail.add(read, &grown, &share);
            used.detail.add_errors(&grown, read.xids.as_deref());
            let of_span = |busy: Busy| span_ns * busy.sm_ppm.min(1_000_000) / 1_000_000;
            // Whoever keeps it busy, it is not idle.
            if let (Some(device), true) = (read.busy.or(busy.filter(|_| !is_shared)), span_ns > 0) {
                let open = open.entry(job.clone()).or_default();
                let busy_ns = of_span(device);
                let stretch = Stretch { begin_ns: now_ns - span_ns, end_ns: now_ns, busy_ns };
                open.devices.push((read.device.uuid.clone(), stretch));
                open.beside_ns += busy.map_or(busy_ns, of_span);
            }
        }
        // An error often ends the process that met it: it is also theirs who have just left.
        for job in seen.iter().flat_map(|seen| &seen.on_it).filter(|job| !parts.contains_key(job)) {
            let devices = self.jobs.get_mut(job);
            if let Some(used) = devices.and_then(|of| of.devices.get_mut(&read.device.uuid)) {
                used.detail.add_errors(&grown, read.xids.as_deref());
            }
        }
        // These are not asked for each time, and grow from where they were told last. Of no other would that do: what came
        // meanwhile may have been counted otherwise.
        let pcie_replays =
            read.counters.pcie_replays.or_else(|| seen.and_then(|seen| seen.counters.pcie_replays));
        let counters = Counters { pcie_replays, ..read.counters };
        let on_it = parts.into_keys().collect();
        let seen = Seen { monotonic_ns: now_ns, energy: of_energy, counters, on_it };
        self.devices.insert(read.device.uuid.clone(), seen);
    }

    /// The jobs whose tasks are to be looked at after each reading: those with devices.
    pub fn watched(&self) -> Vec<K> {
        self.jobs.keys().cloned().collect()
    }

    /// Looks at what the tasks of `job` have done up to `now_ns`, cumulative, soon after a reading; `None`
    /// where that is not known. The readings since the look before are split by what came between. Looks
    /// without a reading between them are one.
    pub fn look(&mut self, job: &K, now_ns: u64, groups: Option<&[Group]>) {
        if let Some(of) = self.jobs.get_mut(job) {
            of.look(self.read_ns, now_ns, groups);
        }
    }

    /// `job` has ended: idle time that nothing accounts for waits no longer.
    pub fn settle(&mut self, job: &K) {
        if let Some(of) = self.jobs.get_mut(job) {
            of.settle(u64::MAX);
        }
    }

    /// The groups of `job`, cumulative, one for each device it ever was on, followed by one for each code of
    /// XID errors there. A state is known only while the job is on the device and the driver answers: `now_ns`
    /// is CLOCK_MONOTONIC.
    pub fn groups_for(&self, job: &K, now_ns: u64) -> Vec<Group> {
        let devices = self.jobs.get(job).into_iter().flat_map(|of| &of.devices);
        devices
            .flat_map(|(uuid, used)| {
                let seen_ns = self.devices.get(uuid).map(|seen| seen.monotonic_ns);
                let is_fresh = now_ns.saturating_sub(used.seen_ns) <= STALE_NS;
                used.groups(seen_ns == Some(used.seen_ns) && is_fresh)
            })
            .collect()
    }

    /// Forgets a job that has ended.
    pub fn forget(&mut self, job: &K) {
        self.jobs.remove(job);
        self.claims.remove(job);
        self.refuted.remove(job);
    }

    /// Keeps what must be said, once: of one device, by its uuid, or of all.
    pub fn note(&mut self, uuid: Option<&str>, text: String) {
        let note = (uuid.map(str::to_owned), text);
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Says in the words of `text` that the device of that uuid was lost, each time, unless it comes and goes.
    pub fn lose(&mut self, uuid: &str, text: String) {
        let (is_lost, times) = self.lost.entry(uuid.to_owned()).or_default();
        *times = times.saturating_add(u32::from(!*is_lost));
        if !std::mem::replace(is_lost, true) && *times <= MOST_LOSSES {
            self.notes.push((Some(uuid.to_owned()), text));
        }
    }

    /// Says of one that was lost that it answers again.
    fn is_back(&mut self, device: &Device) {
        let is_part = !device.parent.is_empty();
        let uuid = if is_part { &device.parent } else { &device.uuid };
        let Some((is_lost @ true, times)) = self.lost.get_mut(uuid) else { return };
        *is_lost = false;
        let name = match is_part {
            true => format!("GPU {}", device.index),
            false => format!("GPU {} ({})", device.number(), device.model),
        };
        let text = match *times {
            MOST_LOSSES => format!("{name} is back; further losses of it are not told"),
            _ => format!("{name} is back"),
        };
        if *times <= MOST_LOSSES {
            self.notes.push((Some(uuid.clone()), text));
        }
    }

    /// What must be said to the owner of `job`: of all GPUs, and of those that it was on.
    pub fn notes_for(&self, job: &K) -> Vec<String> {
        let of = self.jobs.get(job);
        let is_on = |uuid: &String| {
            let mut devices = of.into_iter().flat_map(|of| of.devices.values());
            devices.any(|used| used.device.uuid == *uuid || used.device.parent == *uuid)
        };
        let concerns = |uuid: &Option<String>| uuid.as_ref().is_none_or(is_on);
        let notes = self.notes.iter().filter(|(uuid, _)| concerns(uuid));
        notes.map(|(_, text)| text.clone()).collect()
    }

    /// What must be said of the node, all of it, in its order.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().map(|(_, text)| text.as_str())
    }
}

#[cfg(test)]
mod tests;
