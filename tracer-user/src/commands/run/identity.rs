//! Who runs what, where and when: the facts of a run that its start fixes.

use std::{ffi::OsString, path::Path};

use anyhow::Result;

use super::Args;
use crate::{
    base::{
        clock::wall_ns,
        identity::{has_all_pids, host},
        text::command_line,
    },
    model::{info::JobInfo, job::Job, lease::Lease, point::Origin},
    replay::{Header, VERSION},
};

/// The command's lease: the first that the probes give.
pub const LEASE: Lease = 1;

/// The header of this run: its origin, job and info.
///
/// # Errors
/// When the interval is past what a number of nanoseconds holds.
pub fn header(args: &Args, notes: Vec<String>) -> Result<Header> {
    let start_wall_ns = wall_ns();
    let uid = rustix::process::getuid().as_raw();
    let user = uzers::get_user_by_uid(uid);
    let user = user.map_or_else(String::new, |user| user.name().to_string_lossy().into_owned());
    let job = id(std::process::id(), start_wall_ns, has_all_pids(Path::new("/proc")));
    Ok(Header {
        version: VERSION,
        origin: Origin { cluster: args.cluster.clone(), host: host() },
        jobs: [(LEASE, Job { job, manager: "run".into(), user: user.clone(), ..Job::default() })]
            .into(),
        info: JobInfo {
            name: args.name.clone().unwrap_or_else(|| name_of(&args.command)),
            user,
            uid,
            command: command_line(&args.command),
            start_wall_ns,
        },
        interval_ns: u64::try_from(args.interval.as_nanos())?,
        notes,
        unknown: Vec::new(),
    })
}

/// The id of a run: the tag tells two runs of one command apart. A node has no other process with this number in this
/// second; but in a container it is mostly 1, and then only the nanosecond tells.
fn id(pid: u32, start_wall_ns: u64, is_of_node: bool) -> String {
    format!("{pid}-{}", if is_of_node { start_wall_ns / 1_000_000_000 } else { start_wall_ns })
}

/// The program's file name.
pub fn name_of(command: &[OsString]) -> String {
    let program = command.first().map(Path::new);
    let name = program.and_then(Path::file_name).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_in_two_containers_have_two_ids() {
        const START_NS: u64 = 1_795_991_510_000_000_000;
        assert_eq!(id(4711, START_NS + 9, true), "4711-1795991510");
        assert_ne!(id(1, START_NS, false), id(1, START_NS + 1, false));
    }

    #[test]
    fn a_command_is_named_by_its_program() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(name_of(&words(&["/usr/bin/sh", "-c", "true"])), "sh");
        assert_eq!(name_of(&words(&[".."])), "");
        assert_eq!(name_of(&[]), "");
    }
}
