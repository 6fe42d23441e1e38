//! Waits for a file system that answers late, by kind of call: in `job_wait`, however the kernel has the
//! task wait. FUSE lets it sleep for some answers, and blocks it for pages.

use std::time::Duration;

use jobtrace_tests::{
    agree::tried_again,
    rig::{
        fuse::{FILE, Fuse, Request},
        overlay::Overlay,
    },
};

use crate::{blocked::slow, found, found_amount};

/// An answer that comes soon.
const SHORT: Duration = Duration::from_micros(300);

/// Where `job_wait` has a kind of call.
#[derive(Clone, Copy, PartialEq)]
enum Filed {
    /// With the file system and its mount.
    ByMount,
    /// By the kind of call alone: it has a path, no descriptor.
    ByCall,
    /// Nowhere.
    Nowhere,
}

/// Waits of a workload of one kind of call are all of `cause`, and filed as `filed` says.
fn of_a_call(name: &str, request: Request, cause: &str, call: &str, filed: Filed) {
    tried_again(|| {
        let both = slow(request);
        let [own, beside] = both.each_ref().map(|fuse| match request {
            Request::Folder => fuse.path().to_str().unwrap().to_owned(),
            _ => fuse.file(FILE),
        });
        let found = found(name, &own, &beside);
        let mut agree = found.adds_up();
        found.is_all(&mut agree, &[cause]);
        found.is_each(&mut agree, cause);
        let mount = both[0].path().to_str().unwrap();
        let waits = found.causes.for_files(call, |fs, at| match filed {
            Filed::ByMount => fs == "fuse" && at == mount,
            Filed::ByCall => fs == "unknown" && at.is_empty(),
            Filed::Nowhere => fs == "fuse",
        });
        let whole = found.causes.of_cause(cause).ns;
        let least = if filed == Filed::Nowhere { 0 } else { whole / 100 * 98 };
        let most = if filed == Filed::Nowhere { 0 } else { whole + whole / 50 };
        agree.between(&format!("job_wait, {call}"), waits.ns, least..=most);
        let other = found.causes.for_files(call, |_, at| at == both[1].path().to_str().unwrap());
        agree.exact("job_wait, of the file system beside it", other.ns, 0);
        agree.end();
    });
}

#[test]
fn reads_of_pages() {
    of_a_call("read", Request::Read, "blocked_read", "read", Filed::ByMount);
    of_a_call("pread", Request::Read, "blocked_read", "read", Filed::ByMount);
}

/// Of an overlay the file system is that of its layers, the mount its own.
#[test]
fn reads_through_an_overlay() {
    tried_again(|| {
        let both = slow(Request::Read);
        let overlay = Overlay::of([both[0].path(), both[1].path()]);
        let found = found("pread", &overlay.file(FILE), &both[1].file(FILE));
        let mut agree = found.adds_up();
        found.is_all(&mut agree, &["blocked_read"]);
        let whole = found.causes.of_cause("blocked_read").ns;
        let waits = found.causes.for_files("read", |fs, at| fs == "fuse" && at == overlay.path());
        agree.between("job_wait, of the overlay", waits.ns, whole / 100 * 98..=whole);
        agree.end();
    });
}

#[test]
fn writes_at_a_place() {
    of_a_call("pwrite", Request::Write, "sleep_other", "write", Filed::ByMount);
}

/// A plain write that sleeps could be one to a pipe: its file tells.
#[test]
fn plain_writes_that_sleep() {
    of_a_call("write", Request::Write, "sleep_other", "write", Filed::ByMount);
}

/// So short that those of a pipe are not always asked for their file.
#[test]
fn short_plain_writes() {
    tried_again(|| {
        let both = [0, 1].map(|_| Fuse::mount(&[(Request::Write, SHORT)]).unwrap());
        let [own, beside] = both.each_ref().map(|fuse| fuse.file(FILE));
        let found = found_amount("write", 300, 0, [&own, &beside]);
        let mut agree = found.adds_up();
        found.is_all(&mut agree, &["sleep_other"]);
        let whole = found.causes.of_cause("sleep_other").ns;
        let waits = found.causes.for_files("write", |fs, _| fs == "fuse");
        agree.between("job_wait, write", waits.ns, whole / 100 * 95..=whole);
        agree.end();
    });
}

#[test]
fn storing() {
    of_a_call("sync", Request::Sync, "sleep_other", "sync", Filed::ByMount);
}

#[test]
fn opening() {
    of_a_call("open", Request::Open, "sleep_other", "metadata", Filed::ByCall);
}

#[test]
fn names_and_attributes() {
    of_a_call("stat", Request::Lookup, "sleep_other", "metadata", Filed::ByCall);
}

#[test]
fn folders() {
    of_a_call("folder", Request::Folder, "sleep_other", "metadata", Filed::ByMount);
}

#[test]
fn ioctls() {
    of_a_call("ioctl", Request::Ioctl, "sleep_ioctl", "metadata", Filed::Nowhere);
}
