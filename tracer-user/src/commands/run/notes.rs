//! Notes of a run: what the reader of the numbers must know besides.

use anyhow::Result;

use crate::{
    cgroup::{job::JobCgroup, remove::Removal},
    probes::{Probes, WaitMode},
};

/// What the reader of the numbers must know before the run begins.
pub fn notes(cgroup: &JobCgroup, probes: &Probes, waits: WaitMode) -> Vec<String> {
    let mut notes = cgroup.notes().to_vec();
    for (row, why) in probes.missing_hooks() {
        let (gives, program) = (row.gives, row.hook.program);
        notes.push(format!("unknown on this kernel: {gives} ({program}: {why})"));
    }
    if let Some((gives, why)) = probes.missing_waits(waits) {
        notes.push(format!("unknown on this kernel: {gives} ({why})"));
    }
    if cgroup.block().is_none() {
        notes.push(
            "block I/O is unknown: the kernel charges it to a cgroup above the command's (enable \
             the io controller there)"
                .into(),
        );
    }
    if !cgroup.has_memory() {
        notes.push(
            "memory is unknown: the command has no cgroup of its own to which the kernel charges it \
             (jobtrace needs the memory controller where it runs, its cgroups mounted writable and, \
             of version 1, not together with cpu or cpuset; in a cgroup namespace, mount them anew)"
                .into(),
        );
    }
    notes
}

/// That operations on files cannot be counted, and why.
pub fn unknown_io(error: &anyhow::Error) -> String {
    format!("unknown on this kernel: operations on files, which --io asks for ({error:#})")
}

/// What outlives the run of its cgroup.
pub fn left_behind(removal: Result<Removal>) -> Vec<String> {
    match removal {
        Ok(Removal::Done) => Vec::new(),
        Ok(Removal::LeftBehind(pids)) => {
            let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
            let (count, list) = (pids.len(), pids.join(", "));
            let are = if count == 1 { "process is" } else { "processes are" };
            vec![format!(
                "{count} {are} still running after the command ended, and left in its cgroup: {list}"
            )]
        }
        Err(error) => vec![format!("the command's cgroup could not be removed: {error:#}")],
    }
}
