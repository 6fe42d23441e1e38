//! One job's devices, and the looks at its tasks, which tell why they were idle. Pure.

use std::collections::BTreeMap;

use super::{
    idle::{LATE_NS, Stretch},
    tasks::TaskTimes,
    totals::MAX_GAP_NS,
    used::Used,
};
use crate::model::{
    group::Group,
    tables::{FAULT, SCHED},
};

/// Readings that wait for a look at the job's tasks; where nobody looks, the oldest is done without.
const MOST_OPEN: usize = 64;

/// One job's devices, by uuid.
#[derive(Debug, Default)]
pub struct JobDevices {
    pub devices: BTreeMap<String, Used>,
    /// Readings since the last look at its tasks.
    open: Vec<Open>,
    /// When its tasks were looked at last, and what they had done.
    looked: Option<(u64, Vec<Group>)>,
}

/// A reading of the devices that a job has.
#[derive(Debug, Default)]
pub struct Open {
    /// By uuid, where they tell how busy they were.
    pub devices: Vec<(String, Stretch)>,
    /// How long the job itself kept them busy, all of them added up.
    pub beside_ns: u64,
}

impl JobDevices {
    /// Adds a reading, which waits for a look.
    pub fn add(&mut self, open: Open) {
        self.open.push(open);
        if self.open.len() > MOST_OPEN {
            let oldest = self.open.remove(0);
            self.close(&oldest, |_| None);
        }
    }

    /// Looks at what the tasks have done up to `now_ns`; the last reading was at `read_ns`. As
    /// [`Totals::look`](super::Totals::look).
    pub fn look(&mut self, read_ns: u64, now_ns: u64, groups: Option<&[Group]>) {
        let is_looked_at = self.looked.as_ref().is_some_and(|(at_ns, _)| *at_ns >= read_ns);
        if self.open.is_empty() && is_looked_at {
            // What came since belongs beside the next reading.
            return self.settle(now_ns.saturating_sub(LATE_NS));
        }
        let open = std::mem::take(&mut self.open);
        let begin_ns = open.iter().flat_map(|open| &open.devices).map(|(_, at)| at.begin_ns).min();
        let before = self.looked.take();
        self.looked = groups.map(|groups| {
            let counted = |group: &&Group| group.is(&SCHED) || group.is(&FAULT);
            (now_ns, groups.iter().filter(counted).cloned().collect())
        });
        let near = |at_ns: u64| begin_ns.is_none_or(|begin_ns| begin_ns <= at_ns + MAX_GAP_NS);
        match (before.filter(|(at_ns, _)| near(*at_ns)), &self.looked) {
            (Some((at_ns, older)), Some((_, newer))) => {
                let span_ns = now_ns.saturating_sub(at_ns).max(1);
                let tasks = TaskTimes::between(&older, newer, span_ns);
                if let Some(tasks) = &tasks {
                    self.devices.values_mut().for_each(|used| used.idle.lay_back(at_ns, tasks));
                }
                for open in &open {
                    self.close(open, |part_ns| Some(tasks.as_ref()?.part(part_ns, span_ns)));
                }
            }
            // Before the first look nobody knows what the tasks did.
            (None, looked) => {
                let is_split = looked.is_some();
                self.devices.values_mut().for_each(|used| used.idle.is_split |= is_split);
                open.iter().for_each(|open| self.close(open, |_| None));
            }
            (Some(_), None) => open.iter().for_each(|open| self.close(open, |_| None)),
        }
        self.settle(now_ns.saturating_sub(LATE_NS));
    }

    /// What nothing accounts for up to `until_ns` waits no longer.
    pub fn settle(&mut self, until_ns: u64) {
        self.devices.values_mut().for_each(|used| used.idle.settle(until_ns));
    }

    fn close(&mut self, open: &Open, tasks: impl Fn(u64) -> Option<TaskTimes>) {
        for (uuid, stretch) in &open.devices {
            if let Some(used) = self.devices.get_mut(uuid) {
                let tasks = tasks(stretch.span_ns());
                used.idle.add(*stretch, open.beside_ns, tasks.as_ref());
            }
        }
    }
}
