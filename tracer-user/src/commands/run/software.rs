//! Which software the command runs, where that is asked for: what the kernel saw, named.

use std::time::Duration;

use anyhow::Result;

use super::identity::LEASE;
use crate::{
    base::{clock::monotonic_ns, layout::Layout},
    census::{Namer, Options, Site},
    model::software::Software,
    probes::{Census, Family, Probes, Room},
};

/// How long names are waited for when the command has ended: a folder of modules may be on a file system that hangs.
const PATIENCE: Duration = Duration::from_secs(3);

/// Has `probes` see it from now on; what of it this kernel does not tell goes to `notes`.
///
/// # Errors
/// When the kernel lets nobody see it, or the site's file is damaged.
pub fn begin(probes: &mut Probes, layout: &Layout, notes: &mut Vec<String>) -> Result<Namer> {
    let namer = Namer::new(Options { site: Site::read()?, apart: true, ..Options::default() })?;
    probes.load_census(layout, Room::JOB)?;
    if let Some(census) = &mut probes.census {
        census.begin(LEASE, monotonic_ns());
        let missing = probes.missing_hooks().filter(|(row, _)| row.family == Family::Census);
        notes.extend(
            missing.map(|(row, why)| format!("unknown on this kernel: {} ({why})", row.gives)),
        );
    }
    Ok(namer)
}

/// Takes what was seen so far.
pub fn take(probes: &mut Probes) {
    probes.census.iter_mut().for_each(Census::drain);
}

/// Takes what was seen since the last time.
pub fn tell(probes: &mut Probes, namer: &Namer) {
    let slot = probes.slots.slot_of(LEASE);
    let Some(census) = &mut probes.census else { return };
    census.drain();
    if let Some(seen) = census.seen(LEASE, slot) {
        namer.tell(LEASE, seen);
    }
}

/// All of it, named, at the command's end.
pub fn end(probes: &mut Probes, namer: &Namer, notes: &mut Vec<String>) -> Option<Software> {
    tell(probes, namer);
    if !namer.settle(PATIENCE) {
        notes.push("not all of the software could be named in time".into());
    }
    namer.take().remove(&LEASE)
}

/// What of it is not known, in words.
pub fn unknown(error: &anyhow::Error) -> String {
    format!("which software the command runs is unknown: {error:#}")
}
