//! Waits that nothing interrupts, of one cause each.

use std::{ops::RangeInclusive, time::Duration};

use jobtrace_tests::{
    agree::{Agreement, MS, tried_again},
    disk,
    rig::{
        core_dumps::SlowCoreDumps,
        fuse::{FILE, Fuse, Request, SCRIPT},
    },
};

use crate::{COUNT, Found, TIME_MS, found, of_one_cause};

/// File systems for the job and beside it that answer one kind of request late.
pub fn slow(request: Request) -> [Fuse; 2] {
    [0, 1].map(|_| Fuse::mount(&[(request, Duration::from_millis(TIME_MS))]).unwrap())
}

/// What the tests of this file have in common: `cause` by a workload on a file of a slow file system.
fn of_a_file(name: &str, request: Request, file: &str, cause: &str) {
    tried_again(|| {
        let both = slow(request);
        let [own, beside] = both.each_ref().map(|fuse| fuse.file(file));
        let found = found(name, &own, &beside);
        let mut agree = found.adds_up();
        found.is_all(&mut agree, &[cause]);
        found.is_each(&mut agree, cause);
        agree.end();
    });
}

#[test]
fn for_a_child_that_has_its_parents_memory() {
    of_one_cause("vfork", "blocked_child");
}

#[test]
fn for_pages_of_a_mapped_file() {
    of_a_file("fault", Request::Read, FILE, "blocked_fault");
}

/// The children who wait know not how long: the file system does.
fn of_children(name: &str, request: Request, file: &str, cause: &str) {
    tried_again(|| {
        let both = slow(request);
        let [own, beside] = both.each_ref().map(|fuse| fuse.file(file));
        let found = found(name, &own, &beside);
        let mut agree = found.adds_up();
        let waits = found.causes.of_cause(cause);
        // The server may have to wait for its own CPU.
        let least = COUNT * TIME_MS * MS;
        agree.between(&format!("{cause}_ns"), waits.ns, least / 100 * 98..=least * 2);
        agree.between(&format!("{cause}_waits"), waits.count, COUNT - 2..=2 * COUNT);
        // Of each child's other requests the server answers at once, and the child sleeps as long as that takes: up to a
        // millisecond for all of its.
        let asked = found.causes.of_cause("sleep_other").ns.min(COUNT * MS);
        found.causes.are_mostly(&mut agree, &[cause], asked);
        agree.end();
    });
}

#[test]
fn for_a_program_to_execute() {
    of_children("exec", Request::Read, SCRIPT, "blocked_exec");
}

#[test]
fn for_what_is_stored_at_the_end_of_a_process() {
    of_children("exit", Request::Write, FILE, "blocked_exit");
}

/// The threads of a process that is dumped are done with whatever they slept in.
#[test]
fn for_the_core_dump_of_its_process() {
    const DUMP: Duration = Duration::from_millis(300);
    let _dumps = SlowCoreDumps::of(DUMP).unwrap();
    tried_again(|| {
        let found = found("core_dump", "", "");
        let mut agree = found.adds_up();
        let waits = found.causes.of_cause("blocked_exit");
        let least = COUNT * DUMP.as_nanos() as u64;
        agree.between("blocked_exit_ns", waits.ns, least / 100 * 98..=least * 3);
        agree.between("blocked_exit_waits", waits.count, COUNT..=2 * COUNT);
        agree.end();
    });
}

#[test]
fn for_the_lock_of_the_address_space() {
    tried_again(|| {
        let both = slow(Request::Write);
        let [own, beside] = both.each_ref().map(|fuse| fuse.file(FILE));
        let found = found("memory", &own, &beside);
        let mut agree = found.adds_up();
        found.is_all(&mut agree, &["blocked_memory"]);
        // One thread waits for the file system, the other for the first one.
        let least = COUNT * TIME_MS * MS;
        let waits = found.causes.of_cause("blocked_memory");
        agree.between("blocked_memory_ns, of two threads", waits.ns, least / 10 * 18..=least * 4);
        agree.between("blocked_memory_waits", waits.count, 2 * COUNT - 4..=u64::MAX);
        agree.end();
    });
}

/// What is waited by workload `name` on a real disk, as `agrees` has it.
fn of_a_disk(name: &str, agrees: fn(&Found, &mut Agreement)) {
    tried_again(|| {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        disk::device_below(folder.path());
        let [own, beside] = ["own", "beside"].map(|name| folder.path().join(name));
        let found = found(name, own.to_str().unwrap(), beside.to_str().unwrap());
        let mut agree = found.adds_up();
        agrees(&found, &mut agree);
        agree.end();
    });
}

/// Bounds of what was waited, where the workload knows of `off` nanoseconds. Joining cgroups is writing too, opening
/// libraries metadata.
fn about(off: u64) -> RangeInclusive<u64> {
    (off / 100 * 98).saturating_sub(MS)..=off + off / 50 + 20 * MS
}

/// Whether a file system is known, with its mount.
fn is_known(fs: &str, mount: &str) -> bool {
    fs != "unknown" && !mount.is_empty()
}

/// A real disk takes as long as it takes, and whoever else writes to it makes each call wait: each kind is
/// held against the workload's own account.
#[test]
fn for_a_disk() {
    of_a_disk("disk", |found, agree| {
        for (cause, call) in [
            ("blocked_read", "read"),
            ("blocked_write", "write"),
            ("blocked_sync", "sync"),
            ("blocked_metadata", "metadata"),
        ] {
            let known = found.report.fact(&format!("{call}_ns"));
            let off = about(known);
            let waits = found.causes.of_cause(cause);
            agree.between(&format!("{cause}_ns"), waits.ns, off.clone());
            if matches!(call, "read" | "sync") {
                let on_disk = found.causes.for_files(call, is_known);
                agree.between(&format!("job_wait, {call}"), on_disk.ns, off);
                // A fast disk may have read before anybody could wait.
                let least = known.min(1);
                agree.between(
                    &format!("job_wait, {call}, count"),
                    on_disk.count,
                    least..=waits.count,
                );
            }
        }
    });
}

/// What a splice out of a pipe waits for is the file that it writes.
#[test]
fn for_a_disk_that_a_pipe_is_emptied_to() {
    of_a_disk("splice_out", |found, agree| {
        let known = found.report.fact("off_cpu_ns");
        let off = about(known);
        let waits = found.causes.of_cause("blocked_write");
        agree.between("blocked_write_ns", waits.ns, off.clone());
        agree.between("job_wait, write", found.causes.for_files("write", is_known).ns, off);
        let of_pipes = found.causes.for_files("read", |fs, _| fs == "pipefs");
        agree.exact("job_wait, of pipes", of_pipes.ns, 0);
        agree.between("blocked_write_waits", waits.count, known.min(1)..=u64::MAX);
    });
}
