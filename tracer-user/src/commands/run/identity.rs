//! Who runs what, where and when: the facts of a run that its start fixes.

use std::{ffi::OsString, path::Path};

use anyhow::Result;

use super::Args;
use crate::{
    base::{clock::wall_ns, identity::host, text::command_line},
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
    // Unique on this node, within one pid namespace: the tag tells two runs of one command apart.
    let job = format!("{}-{}", std::process::id(), start_wall_ns / 1_000_000_000);
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
    fn a_command_is_named_by_its_program() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(name_of(&words(&["/usr/bin/sh", "-c", "true"])), "sh");
        assert_eq!(name_of(&words(&[".."])), "");
        assert_eq!(name_of(&[]), "");
    }
}
