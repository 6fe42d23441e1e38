//! A shared folder that hangs while `push` copies records into it.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use jobtrace_tests::{
    daemon::{
        PATIENCE, Setup,
        files::{self, sum},
        site::Site,
    },
    rig::{daemon::Daemon, folder, share::Share, wait_for},
    stalls::Stalls,
    traced::program,
};

use super::{are_saved, forks, longest_s};

/// Push speaks of a hang after 30 s.
const SILENCE: Duration = Duration::from_secs(60);
/// The longest that its end may take on a busy machine.
const END: Duration = Duration::from_secs(5);

/// Whether a thread of `push` waits for something in the kernel while it copies.
fn is_waiting(pid: i32) -> Option<()> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let mut stats = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    stats.any(|stat| stat.contains("(records) S") || stat.contains("(records) D")).then_some(())
}

#[test]
fn a_share_that_hangs_stops_the_copying_and_nothing_else() {
    let (share, site) = (Share::mount().unwrap(), Site::new().unwrap());
    let (there, behind) = (share.path().join("records"), share.behind().join("records"));
    fs::create_dir(&behind).unwrap();
    let setup = Setup::new("").unwrap();
    let (stalls, mut agent) = (Stalls::watch(), setup.start().unwrap());
    let saved =
        |dir: &Path, jobs: &[u32]| wait_for("records", PATIENCE, || are_saved(dir, &site, jobs));
    site.fork(0, 11).unwrap();
    site.end(0).unwrap();
    saved(setup.records(), &[0]).unwrap();

    share.hang();
    let logs = folder("push").unwrap();
    let push = |name: &str| {
        let mut push = Command::new(program().unwrap());
        push.args(["push", "--follow", "--records-access", "open", "--records"]);
        push.arg(setup.records()).arg("--records-to").arg(&there);
        Daemon::start(&mut push, &logs.path().join(name)).unwrap()
    };
    let words = |name: &str| fs::read_to_string(logs.path().join(name)).unwrap_or_default();
    let end = |mut push: Daemon, name: &str| {
        push.signal(libc::SIGTERM);
        let begin = Instant::now();
        let status = wait_for("the end of push", END, || push.ended()).unwrap();
        eprintln!("push ended within {:?}", begin.elapsed());
        assert!(status.success(), "{status}: {}", words(name));
    };
    let first = push("first");
    let hangs = "s because a file system does not answer: check its server";
    wait_for("that it hangs", SILENCE, || words("first").contains(hangs).then_some(())).unwrap();
    // The agent does not notice.
    site.fork(1, 22).unwrap();
    site.end(1).unwrap();
    saved(setup.records(), &[0, 1]).unwrap();
    share.go_on();
    wait_for("the copy", SILENCE, || are_saved(&behind, &site, &[0])).unwrap();
    let goes_on = || words("first").contains("goes on").then_some(());
    wait_for("that it goes on", PATIENCE, goes_on).unwrap();
    assert_eq!(words("first").matches(hangs).count(), 1, "{}", words("first"));
    end(first, "first");

    share.hang();
    let second = push("second");
    wait_for("its wait", PATIENCE, || is_waiting(second.pid())).unwrap();
    end(second, "second");
    share.go_on();
    site.fork(2, 33).unwrap();
    site.end(2).unwrap();
    saved(setup.records(), &[2]).unwrap();
    let third = push("third");
    saved(&behind, &[0, 1, 2]).unwrap();
    end(third, "third");
    agent.end_well().unwrap();

    let copied = forks(&behind);
    let expected = [11, 22, 33].map(Some);
    assert_eq!([0, 1, 2].map(|job| copied.get(&site.job(job)).copied()), expected);
    let points = files::points(&setup.outbox()).unwrap();
    let longest = longest_s(&points, &stalls);
    let late = sum(&points, "jobtrace_self", "_system", "late_intervals");
    eprintln!("longest interval {longest:.2} s, {late} late");
    assert!(longest < 3.0, "{longest} s: {}", agent.words());
}
