//! Jobs as their cgroups come and go, and what the probes are told to do.

use super::*;

fn owner(job: &str) -> Option<Owner> {
    let root = format!("/slurm/job_{job}").into();
    let job =
        Job { job: job.into(), manager: "slurm".into(), user: String::new(), ..Job::default() };
    Some(Owner { job, root })
}

fn job(name: &str) -> Job {
    owner(name).unwrap().job
}

fn cgroup(id: u64) -> Cgroup {
    Cgroup { table: 0, id }
}

#[test]
fn the_first_cgroup_of_a_job_keeps_its_lease_and_the_next_ones_join() {
    let mut tracker = Tracker::default();
    assert_eq!(tracker.made(cgroup(1), Some(11), true, owner("4"), 0), [Action::Keep(11, true)]);
    assert_eq!(
        tracker.made(cgroup(2), Some(12), true, owner("4"), 0),
        [Action::End(12, 11)],
        "made before the first was known"
    );
    assert_eq!(tracker.made(cgroup(3), Some(11), false, owner("4"), 0), [], "inherited");
    assert_eq!(
        tracker.made(cgroup(4), None, false, owner("4"), 0),
        [Action::Place(cgroup(4), 11)],
        "no slot was to spare"
    );
    assert_eq!(tracker.owner(12), Some(&job("4")), "its last values are the job's");
    assert_eq!(tracker.made(cgroup(5), Some(13), true, None, 0), [Action::End(13, 0)]);
    assert_eq!(tracker.owner(13), None);
    assert_eq!(tracker.made(cgroup(6), None, false, None, 0), []);
}

#[test]
fn a_job_without_a_slot_gets_one_later_with_all_its_cgroups() {
    let mut tracker = Tracker::default();
    assert_eq!(tracker.made(cgroup(1), None, false, owner("4"), 0), []);
    assert_eq!(tracker.made(cgroup(2), None, false, owner("4"), 0), []);
    assert_eq!(tracker.wanting(), [job("4")]);
    assert_eq!(
        tracker.grant(&job("4"), 9),
        [Action::Keep(9, true), Action::Place(cgroup(1), 9), Action::Place(cgroup(2), 9)]
    );
    assert!(tracker.wanting().is_empty());
    tracker.made(cgroup(3), None, false, owner("6"), 0);
    tracker.removed(cgroup(3), 1);
    (1..3).for_each(|id| _ = tracker.removed(cgroup(id), 2));
    assert_eq!(tracker.ended().len(), 2);
    assert_eq!(tracker.holding(), [job("4")], "the other has no slot to give");
    assert_eq!(tracker.grant(&job("5"), 10), [Action::End(10, 0)], "gone meanwhile");
}

#[test]
fn a_slot_that_a_later_cgroup_found_is_for_those_before_too() {
    let mut tracker = Tracker::default();
    (1..3).for_each(|id| assert_eq!(tracker.made(cgroup(id), None, false, owner("4"), 0), []));
    let of_blocks = Cgroup { table: 1, id: 7 };
    assert_eq!(
        tracker.made(of_blocks, Some(9), true, owner("4"), 0),
        [Action::Keep(9, true), Action::Place(cgroup(1), 9), Action::Place(cgroup(2), 9)]
    );
    assert!(tracker.wanting().is_empty());
    assert_eq!(tracker.made(cgroup(3), None, false, owner("4"), 0), [Action::Place(cgroup(3), 9)]);
}

#[test]
fn the_steps_of_a_job_are_found() {
    let mut tracker = Tracker::default();
    for (id, step) in [(1, ""), (2, "0"), (3, "batch")] {
        let job = Job { step: step.into(), ..job("4") };
        tracker.made(cgroup(id), None, false, Some(Owner { job, root: "/".into() }), 0);
    }
    tracker.made(cgroup(4), None, false, owner("40"), 0);
    let steps: Vec<String> = tracker.series(&job("4")).into_iter().map(|job| job.step).collect();
    assert_eq!(steps, ["", "0", "batch"]);
    assert!(tracker.series(&Job { manager: "pbs".into(), ..job("4") }).is_empty());
}

#[test]
fn a_job_ends_with_its_last_cgroup_and_may_come_back() {
    let mut tracker = Tracker::default();
    tracker.made(cgroup(1), Some(11), true, owner("4"), 0);
    tracker.made(cgroup(2), Some(11), false, owner("4"), 0);
    tracker.removed(cgroup(2), 5);
    tracker.removed(cgroup(9), 5);
    assert!(tracker.ended().is_empty());
    assert_eq!(tracker.release(&job("4")), None, "it lives");
    tracker.removed(cgroup(1), 7);
    assert_eq!(tracker.ended(), [(7, job("4"))]);
    tracker.made(cgroup(3), Some(12), true, owner("4"), 8);
    assert!(tracker.ended().is_empty(), "another step");
    tracker.removed(cgroup(3), 9);
    assert_eq!(tracker.release(&job("4")), Some(Action::End(11, 0)));
    assert_eq!(tracker.jobs().count(), 0);
    assert_eq!(tracker.owner(11), Some(&job("4")), "its last values are still to come");
    tracker.forget_owners(|lease| lease != 11);
    assert_eq!(tracker.owner(11), None);
}

#[test]
fn a_user_that_becomes_known_changes_the_name_everywhere() {
    let mut tracker = Tracker::default();
    tracker.made(cgroup(1), Some(11), true, owner("4"), 0);
    let named = Job { user: "ada".into(), ..job("4") };
    assert!(tracker.rename(&job("4"), &named));
    assert!(!tracker.rename(&job("4"), &named), "done already");
    assert_eq!(tracker.made(cgroup(2), Some(11), false, owner("4"), 0), []);
    assert_eq!(tracker.jobs().count(), 1, "its next cgroup has the old name");
    tracker.removed(cgroup(2), 1);
    assert_eq!(tracker.owner(11), Some(&named));
    assert_eq!((tracker.named(&job("4")), tracker.named(&job("5"))), (&named, &job("5")));
    assert!(tracker.unknown().eq([&named]));
    assert_eq!(tracker.tell_execs(&named, true), [Action::Keep(11, true)]);
    assert_eq!(tracker.know(&named), [Action::Keep(11, false)]);
    assert_eq!((tracker.tell_execs(&named, true), tracker.unknown().count()), (Vec::new(), 0));
    tracker.removed(cgroup(1), 1);
    assert_eq!(tracker.ended(), [(1, named)]);
}

#[test]
fn the_end_of_a_job_that_an_agent_before_knew_is_its_last_cgroups() {
    let mut tracker = Tracker::default();
    tracker.resume(&job("1"), &[], Some(4), "/slurm/job_1".into(), 900, 900);
    tracker.resume_owner(4, &job("1"));
    tracker.removed_of(4, 500);
    tracker.removed_of(9, 501);
    tracker.removed_of(4, 502);
    assert_eq!(tracker.ended(), [(502, job("1"))]);
    // Another of its cgroups is there.
    tracker.made(Cgroup { table: 0, id: 12 }, Some(4), false, owner("1"), 901);
    tracker.removed_of(4, 902);
    assert!(tracker.ended().is_empty());
}

#[test]
fn how_long_ago_a_job_ended_is_known_to_the_next_agent() {
    let mut tracker = Tracker::default();
    tracker.resume(&job("1"), &[], Some(4), "/slurm/job_1".into(), 5, 900);
    tracker.resume(&job("2"), &[], Some(7), "/slurm/job_2".into(), 6, 900);
    assert_eq!(tracker.ended(), [(5, job("1")), (6, job("2"))]);
    // One that is there has not ended, whatever was known.
    tracker.made(Cgroup { table: 0, id: 12 }, Some(7), false, owner("2"), 901);
    assert_eq!(tracker.ended(), [(5, job("1"))]);
}

#[test]
fn a_job_whose_id_is_used_again_keeps_its_own() {
    let mut tracker = Tracker::default();
    tracker.made(cgroup(1), Some(11), true, owner("4"), 0);
    let first = Job { user: "ada".into(), ..job("4") };
    tracker.rename(&job("4"), &first);
    tracker.removed(cgroup(1), 7);
    // It is back, and its tasks say that it is another.
    tracker.made(cgroup(2), None, false, owner("4"), 8);
    let second = Job { life: 1, ..first.clone() };
    assert_eq!(tracker.split(&first, &second, 7, 9), [], "no slot was to spare");
    assert_eq!(tracker.ended(), [(7, first.clone())]);
    assert_eq!(tracker.wanting(), std::slice::from_ref(&second));
    assert_eq!(tracker.grant(&second, 13), [Action::Keep(13, true), Action::Place(cgroup(2), 13)]);
    assert_eq!((tracker.owner(11), tracker.owner(13)), (Some(&first), Some(&second)));
    assert_eq!(
        tracker.series(&second),
        std::slice::from_ref(&second),
        "what is learnt is its alone"
    );
    assert_eq!(tracker.release(&first), Some(Action::End(11, 0)));
    // Its next cgroups are the second's, also under the name of the path.
    tracker.made(cgroup(3), Some(13), false, owner("4"), 10);
    assert_eq!(tracker.job_of(cgroup(3)), Some(&second));
    [2, 3].into_iter().for_each(|id| _ = tracker.removed(cgroup(id), 11));
    assert_eq!(tracker.ended(), [(11, second.clone())]);
    tracker.release(&second);
    // A third, while the second's record is not yet saved.
    let third = Job { life: 2, ..job("4") };
    tracker.begin_life(&job("4"), third.clone());
    tracker.made(cgroup(4), Some(14), true, owner("4"), 12);
    assert_eq!((tracker.job_of(cgroup(4)), tracker.owner(14)), (Some(&third), Some(&third)));
}

/// A job of lease 11 that ended at 7, and has a step again whose directories came with slots of their own.
fn returned() -> Tracker {
    let mut tracker = Tracker::default();
    tracker.made(cgroup(1), Some(11), true, owner("4"), 0);
    tracker.know(&job("4"));
    tracker.removed(cgroup(1), 7);
    for (id, lease) in [(2, 12), (3, 13)] {
        let made = tracker.made(cgroup(id), Some(lease), true, owner("4"), 8);
        assert_eq!(made, [Action::Keep(lease, true)], "it is told of its programs");
    }
    assert_eq!(tracker.made(cgroup(4), Some(13), false, owner("4"), 8), [], "inherited");
    let place = [Action::Place(cgroup(5), 12)];
    assert_eq!(tracker.made(cgroup(5), None, false, owner("4"), 8), place, "no slot was to spare");
    assert_eq!(
        (tracker.apart().collect::<Vec<_>>(), tracker.returned()),
        (vec![12, 13], vec![job("4")])
    );
    assert!([11, 12, 13].into_iter().all(|lease| tracker.goes_on_in(lease)));
    assert!(tracker.wanting().is_empty());
    tracker
}

#[test]
fn what_came_after_the_end_of_another_job_of_that_id_is_its_own() {
    let mut tracker = returned();
    let second = Job { life: 1, ..job("4") };
    let actions = [Action::Keep(12, true), Action::End(13, 12)];
    assert_eq!(tracker.split(&job("4"), &second, 7, 9), actions);
    assert_eq!(tracker.job(&second).unwrap().lease, Some(12));
    assert_eq!(tracker.ended(), [(7, job("4"))]);
    let owners = [11, 12, 13].map(|lease| tracker.owner(lease).cloned());
    assert_eq!(owners, [Some(job("4")), Some(second.clone()), Some(second.clone())]);
    assert!(tracker.wanting().is_empty() && tracker.returned().is_empty());
    assert_eq!(tracker.job_of(cgroup(3)), Some(&second));
}

/// The name of a user may come late.
#[test]
fn a_name_that_comes_after_the_id_was_used_again_leaves_its_paths_to_the_last() {
    let mut tracker = returned();
    let second = Job { life: 1, ..job("4") };
    tracker.split(&job("4"), &second, 7, 9);
    let named = [job("4"), second].map(|job| (Job { user: "ada".into(), ..job.clone() }, job));
    for (to, from) in &named {
        assert!(tracker.rename(from, to));
    }
    tracker.made(cgroup(6), Some(12), false, owner("4"), 10);
    assert_eq!(tracker.job_of(cgroup(6)), Some(&named[1].0));
}

#[test]
fn a_directory_is_the_innermost_jobs_and_of_one_id_the_last_ones() {
    let mut tracker = returned();
    let mut second = Job { life: 1, ..job("4") };
    // Whichever is first by its name.
    second.user = "ada".into();
    tracker.split(&job("4"), &second, 7, 9);
    let inner = Owner { root: "/slurm/job_4/step_0/inner".into(), ..owner("5").unwrap() };
    tracker.made(cgroup(9), None, false, Some(inner), 9);
    let of = |tracker: &Tracker, path: &str| {
        tracker.owner_of(std::path::Path::new(path)).map(|(job, _)| job.clone())
    };
    assert_eq!(of(&tracker, "/slurm/job_4"), Some(second.clone()));
    assert_eq!(of(&tracker, "/slurm/job_4/step_0"), Some(second.clone()));
    assert_eq!(of(&tracker, "/slurm/job_4/step_0/inner/a"), Some(job("5")));
    assert_eq!(of(&tracker, "/slurm/job_44"), None);
    // Memory's directory may go after the others.
    (2..6).for_each(|id| _ = tracker.removed(cgroup(id), 20));
    assert!(tracker.job(&second).unwrap().ended_ns.is_some());
    assert_eq!(of(&tracker, "/slurm/job_4"), Some(second));
    let mut third = returned();
    let last = Job { life: 1, ..job("4") };
    third.split(&job("4"), &last, 7, 9);
    assert_eq!(of(&third, "/slurm/job_4"), Some(last));
}

#[test]
fn what_came_after_the_end_of_the_same_job_joins_it() {
    let mut tracker = returned();
    let keep = [11, 12, 13].map(|lease| Action::Keep(lease, true));
    assert_eq!(tracker.forget_known(&job("4")), keep, "its tasks may tell of another");
    let joined = [Action::Keep(11, false), Action::End(12, 11), Action::End(13, 11)];
    assert_eq!(tracker.know(&job("4")), joined);
    assert!(tracker.returned().is_empty());
    assert_eq!(tracker.owner(13), Some(&job("4")), "its last values are the job's");
    assert_eq!(tracker.made(cgroup(6), Some(14), true, owner("4"), 9), [Action::End(14, 11)]);
}
