//! Tasks that are stopped or frozen, and what they go on waiting for afterwards.

use jobtrace_tests::{
    agree::{MS, tried_again},
    own_cgroup::OwnCgroup,
};

use crate::{found, found_amount, of_others};

#[test]
fn stopped_by_a_signal() {
    of_others("stop", "sleep_stopped");
}

#[test]
fn frozen_with_a_cgroup_that_the_job_made() {
    of_others("freeze", "sleep_stopped");
}

/// The freezer of cgroup v1, where it is mounted: nothing else is missing where it is not, as the
/// kernel then has v2's only.
#[test]
fn frozen_by_the_freezer() {
    tried_again(|| {
        let (own, beside) =
            (OwnCgroup::make("frozen", &["freezer"]), OwnCgroup::make("frozen-2", &["freezer"]));
        let paths = [&own, &beside].map(|cgroup| cgroup.directory_with("freezer.state"));
        let [Some(path), Some(path_beside)] = paths else {
            eprintln!("no freezer of cgroup v1 is mounted here");
            return;
        };
        let found = found("freezer", path.to_str().unwrap(), path_beside.to_str().unwrap());
        let mut agree = found.adds_up();
        found.is_all(&mut agree, &["sleep_stopped"]);
        agree.end();
    });
}

/// A sleep with an end that is stopped goes on in another call, restart_syscall.
#[test]
fn sleeps_that_go_on_after_a_stop() {
    for (name, cause) in [
        ("stopped-timer", "sleep_timer"),
        ("stopped-futex", "sleep_lock"),
        ("stopped-poll", "sleep_poll"),
    ] {
        tried_again(|| {
            let found = found_amount(name, 5, 20, ["", ""]);
            let mut agree = found.adds_up();
            let [off, least, most] =
                ["off_cpu_ns", "held_least_ns", "held_most_ns"].map(|name| found.report.fact(name));
            let [stopped, slept] =
                ["sleep_stopped", cause].map(|cause| found.causes.of_cause(cause).ns);
            agree.near("sleep_stopped", stopped, least..=most, 2, 2 * MS);
            agree.near(cause, slept, off.saturating_sub(most)..=off - least, 2, 2 * MS);
            found.causes.are_mostly(&mut agree, &["sleep_stopped", cause], 0);
            agree.end();
        });
    }
}
