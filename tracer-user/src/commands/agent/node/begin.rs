//! How a node's tracing begins: anew, or where the agent before this one ended.

use anyhow::Result;

use super::{
    Node, NodeSettings,
    care::{Care, START_MOST},
    jobs::Jobs,
    net_devices::NetDevices,
    slots::Slots,
    software::begin_older,
};
use crate::{
    base::cpus,
    commands::agent::{
        gpus::Gpus,
        hierarchy::View,
        log::Log,
        overhead::Overhead,
        state::{AgentState, JournalEntry, Keeper},
    },
    model::{
        snapshot::Snapshot,
        tables::{Own, SELF},
    },
    probes::Probes,
};

/// Where the kernel shows the node's devices.
const SYSFS: &str = "/sys";

impl Node {
    /// A node that is traced from now on: the jobs that are there are found, what they did so far is not
    /// counted.
    ///
    /// # Errors
    /// When the cgroups or the maps cannot be read.
    pub fn start(probes: Probes, view: View, settings: NodeSettings, log: &Log) -> Result<Self> {
        let mut node = Self::new(probes, view, settings, log)?;
        // Before any job has a slot: all that is in theirs from now on is told of.
        node.previous = node.read()?;
        node.lost_events = node.count_lost_events();
        node.care.work_for(START_MOST, &mut node.jobs, &mut node.slots, log)?;
        let told = node.jobs.tracker.wanting();
        node.jobs.find_existing(&mut node.slots, log)?;
        node.care.work_for(START_MOST, &mut node.jobs, &mut node.slots, log)?;
        // A task that runs on is counted from its next switch on.
        cpus::enter_each();
        // The kernel counted none of them: they were made before it was asked to.
        let wanting = node.jobs.tracker.wanting();
        node.unserved = wanting.iter().filter(|job| !told.contains(job)).count() as u64;
        Ok(node)
    }

    /// A node whose programs ran on since an agent before this one reported `state`: the first interval
    /// covers all that came since.
    ///
    /// # Errors
    /// When the cgroups or the maps cannot be read.
    pub fn resume(
        probes: Probes,
        view: View,
        settings: NodeSettings,
        (state, journal): (AgentState, Vec<JournalEntry>),
        keeper: Keeper,
        log: &Log,
    ) -> Result<Self> {
        let mut node = Self::new(probes, view, settings, log)?;
        let (jobs, slots) = (&mut node.jobs, &mut node.slots);
        // From the first event on: the agent after this one may have to know.
        slots.keeper = Some(keeper);
        jobs.resume(state.jobs, &state.owners, journal, state.reported.monotonic_ns, slots)?;
        node.previous = state.reported;
        // This process's own clocks begin anew.
        for own in node.previous.own.iter_mut().filter(|own| own.is(&SELF)) {
            own.set(Own::cpu_ns, 0);
            own.set(Own::drain_ns, 0);
        }
        node.lost_events = node.count_lost_events();
        let (jobs, slots) = (&mut node.jobs, &mut node.slots);
        // No slot is taken back before it is known which jobs are there still.
        jobs.take_events(slots, log);
        jobs.find_again(slots, log)?;
        // Of programs that ran meanwhile nobody was told.
        jobs.learn_from_all(slots, log);
        let living: Vec<_> = jobs.tracker.jobs().map(|(job, _)| job.clone()).collect();
        living.iter().for_each(|job| begin_older(job, jobs, slots));
        node.care(log)?;
        Ok(node)
    }

    fn new(probes: Probes, view: View, settings: NodeSettings, log: &Log) -> Result<Self> {
        let NodeSettings { spare_slots, naming, overhead, gpus, owners_count_io, records_every } =
            settings;
        let mut jobs = Jobs::new(view, naming.clone(), probes.unknown())?;
        jobs.owners_count_io = owners_count_io;
        Ok(Self {
            records_every,
            watch: None,
            net_devices: NetDevices::new(SYSFS.into()),
            is_last: false,
            overhead: Overhead::new(overhead, &probes),
            gpus: Gpus::start(gpus, &naming, log),
            jobs,
            slots: Slots::new(probes, spare_slots),
            care: Care::default(),
            previous: Snapshot::default(),
            lost_events: 0,
            unserved: 0,
        })
    }
}
