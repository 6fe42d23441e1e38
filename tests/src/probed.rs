//! What the tests of the probes themselves, without the agent, share: a cgroup of their own, and what snapshots
//! say of it.

use std::path::PathBuf;

use jobtrace::{
    cgroup::{hierarchies::Hierarchies, job::JobCgroup},
    model::{
        group::Group,
        lease::Lease,
        snapshot::Snapshot,
        tables::{SCHED, Sched},
    },
};
use tracer_ebpf::handle::{Handle, Number};

/// A cgroup called `name`.
pub fn cgroup(name: &str) -> JobCgroup {
    JobCgroup::create(&Hierarchies::read().expect("cgroups"), name).expect("a cgroup of our own")
}

/// The directory by which the cgroup's tasks are told apart.
pub fn tasks_directory(cgroup: &JobCgroup) -> PathBuf {
    let id = cgroup.tasks();
    let place = cgroup.places().own().find(|place| place.number == id.hierarchy);
    place.expect("the tasks' hierarchy").directory.to_path_buf()
}

/// Forks of a lease so far.
pub fn forks(snapshot: &Snapshot, lease: Lease) -> u64 {
    let groups = snapshot.slots.get(&lease).map_or(&[][..], Vec::as_slice);
    let sched = groups.iter().find(|group| group.is(&SCHED));
    sched.and_then(|group| group.number(Sched::forks)).expect("forks are known")
}

/// A number of `jobtrace_self`.
pub fn own(snapshot: &Snapshot, field: Handle<Number>) -> u64 {
    let known = |group: &Group| group.number(field);
    snapshot.own.iter().find_map(known).unwrap_or_else(|| panic!("{field:?} is known"))
}
