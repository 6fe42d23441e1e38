//! Which software the command runs, where that is asked for: what the kernel saw, named.

use std::{
    os::fd::{BorrowedFd, OwnedFd},
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result};
use tokio::io::{Interest, unix::AsyncFd};

use super::identity::LEASE;
use crate::{
    base::layout::Layout,
    census::{DEFAULT_FILE, Namer, Options, Site},
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
    let namer = Namer::new(Options { site: site(Path::new(DEFAULT_FILE))?, ..Options::default() })?;
    probes.load_census(layout, Room::JOB)?;
    if let Some(census) = &mut probes.census {
        census.begin(LEASE);
        let missing = probes.missing_hooks().filter(|(row, _)| row.family == Family::Census);
        notes.extend(
            missing.map(|(row, why)| format!("unknown on this kernel: {} ({why})", row.gives)),
        );
    }
    Ok(namer)
}

/// The site's settings in `file`, where there is one.
fn site(file: &Path) -> Result<Site> {
    if !file.exists() {
        return Ok(Site::default());
    }
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    Site::parse(&text, file)
}

/// What tells that much was seen; `None` where nobody asked for it.
pub fn ring(probes: &Probes) -> Option<AsyncFd<OwnedFd>> {
    let descriptor = probes.census.as_ref()?.ring_fd();
    // SAFETY: the ring's, which is open while `probes` is borrowed.
    let ring = unsafe { BorrowedFd::borrow_raw(descriptor) }.try_clone_to_owned().ok()?;
    // SAFETY: a descriptor that nothing else has, and that is registered nowhere else.
    unsafe { AsyncFd::register_with_interest(ring, Interest::READABLE) }.ok()
}

/// Waits until so much was seen that it is to be taken before the next reading; for ever where nothing tells.
pub async fn much(ring: Option<&AsyncFd<OwnedFd>>) {
    match ring {
        Some(ring) if ring.readable().await.map(|mut ready| ready.clear_ready()).is_ok() => {}
        _ => std::future::pending().await,
    }
}

/// Takes it.
pub fn take(probes: &mut Probes) {
    probes.census.iter_mut().for_each(Census::drain);
}

/// Takes what was seen since the last time.
pub fn tell(probes: &mut Probes, namer: &Namer) {
    let slot = probes.slot_of(LEASE);
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
    namer.take(LEASE)
}

/// What of it is not known, in words.
pub fn unknown(error: &anyhow::Error) -> String {
    format!("which software the command runs is unknown: {error:#}")
}
