//! How a counting ends, and what is left of it then.

use super::*;
use crate::model::hist::Hist;

fn opens(ops: u64) -> Vec<Group> {
    let mut group = Group::unknown(&IO, ["ext4", "/", "open"].map(str::to_owned).into());
    group.set(Field::ops, ops);
    vec![group]
}

#[test]
fn a_reading_that_fails_leaves_what_the_last_one_gave() {
    let mut counted = Counted::default();
    assert!(counted.take(Err(anyhow::anyhow!("no memory"))).is_err(), "nothing is known");
    assert!(counted.take(Ok(opens(7))).unwrap());
    assert!(counted.take(Ok(opens(9))).unwrap());
    let until_ns = counted.until_ns;
    assert!(!counted.take(Err(anyhow::anyhow!("no memory"))).unwrap());
    assert_eq!((counted.ops(), counted.until_ns), (9, until_ns));
    assert_eq!(counted.notes, ["counting ended before its time: no memory"]);
}

/// Before its mount was known it had no name.
#[test]
fn an_operation_has_one_latency_whatever_its_mount_is_called_later() {
    let opens = |mount: &str, times: u64| {
        let mut group = Group::unknown(&IO, ["ext4", mount, "open"].map(str::to_owned).into());
        group.set_hist(Field::latency_ns, Hist::of(&[(100, times)]));
        vec![group]
    };
    let mut counted = Counted::default();
    counted.take(Ok(opens("", 5))).unwrap();
    counted.take(Ok(opens("/data", 7))).unwrap();
    let sum: u64 = counted.files.latency.columns().flat_map(|(_, counts)| counts).sum();
    assert_eq!(sum, 7);
}

#[test]
fn why_it_ended_is_told_to_the_log_and_of_root_to_the_caller() {
    let all = [Why::Caller, Why::Nobody, Why::Job, Why::Time, Why::Root, Why::Reading];
    let words = all.map(Why::words).join("; ");
    let expected = "its caller ended it; nobody waits for it any more; the job ended; the time is over; root wants \
                    to count; a reading failed";
    assert_eq!(words, expected);
    let notes: Vec<_> = all.into_iter().filter_map(Why::note).collect();
    let note = "counting ended before its time: root has file operations counted, of this job or another one";
    assert_eq!(notes, [note]);
    assert_eq!(
        several_spaces(),
        "the job's processes have different mounts: paths are told by those that most of the owner's processes have"
    );
}
