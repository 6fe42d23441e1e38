//! The end of the agent beside a disk that takes its time.

use super::*;
use crate::{
    model::{info::JobInfo, point::Origin},
    record::Record,
};

/// Records of which `count` are in the hands of a thread that does `work` with them.
fn records(
    count: usize,
    work: impl FnOnce(Receiver<Unsaved>, Arc<Shared>) + Send + 'static,
) -> Records {
    let (queue, unsaved) = sync_channel(MOST_IN_FLIGHT);
    let (_, remarks) = channel();
    let shared = Arc::new(Shared {
        in_flight: AtomicUsize::new(count),
        failed: AtomicUsize::new(0),
        ends: AtomicBool::new(false),
        room: Notify::new(),
    });
    for _ in 0..count {
        let record = Record::new(&Origin::default(), Job::default(), JobInfo::default(), 0);
        queue.try_send(Unsaved::new(record, Vec::new()).0).expect("there is room");
    }
    let of_thread = Arc::clone(&shared);
    let thread = thread::spawn(move || work(unsaved, of_thread));
    let (due, committed, patience) = (VecDeque::new(), None, Duration::ZERO);
    Records { due, committed, patience, queue, thread, remarks, shared, lost: 0 }
}

fn finish(records: Records, goes_on: bool) -> (bool, Duration) {
    let begin = Instant::now();
    let is_complete = records.finish(goes_on, |_| None, &Log::new(Level::Error));
    (is_complete, begin.elapsed())
}

#[test]
fn the_end_waits_for_what_is_being_saved() {
    let (pause, pauses) = channel();
    let slowly = move |unsaved: Receiver<Unsaved>, shared: Arc<Shared>| {
        for one in unsaved {
            let begin = Instant::now();
            thread::sleep(Duration::from_millis(20));
            one.saved();
            shared.done(1, 0);
            let _ = pause.send(begin.elapsed());
        }
    };
    let (is_complete, took) = finish(records(60, slowly), false);
    let longest = pauses.iter().take(60).max().expect("a record");
    // Where the machine itself stood still for long, the disk seemed to hang.
    assert!(is_complete || longest > Duration::from_millis(500), "{took:?}, {longest:?}");
    assert!(took >= Duration::from_secs(1), "{took:?}: longer than for a disk that hangs");
}

#[test]
fn the_end_gives_a_disk_up_that_takes_nothing() {
    for goes_on in [false, true] {
        let (end, ended) = channel::<()>();
        let hangs = move |_unsaved: Receiver<Unsaved>, _: Arc<Shared>| {
            let _ = ended.recv();
        };
        let (is_complete, took) = finish(records(1, hangs), goes_on);
        assert_eq!(is_complete, goes_on, "the next agent saves it");
        assert!(took >= Duration::from_secs(1), "{took:?}");
        drop(end);
    }
}

#[test]
fn what_the_disk_refuses_at_the_end_is_lost_unless_the_next_agent_goes_on() {
    let refuses = |unsaved: Receiver<Unsaved>, shared: Arc<Shared>| {
        // What failed before the end has been told of already.
        while !shared.ends() {
            thread::yield_now();
        }
        for one in unsaved {
            drop(one);
            shared.done(1, 1);
        }
    };
    assert!(!finish(records(3, refuses), false).0);
    assert!(finish(records(3, refuses), true).0, "the next agent saves them");
}
