//! A disk that is full for a while: the agent's side of it, from interval to outbox. The limit on file
//! sizes stands in for it: it holds for the whole process, so this test has a process of its own.

use std::{fs, io::Read};

use flate2::read::MultiGzDecoder;
use jobtrace::{
    lines::{
        backlog::{Backlog, Caps, Pending},
        profile::{BucketStyle, Profile, points},
        spool::{Limits, Spool},
        writer::Writer,
    },
    model::{
        group::Group,
        hist::Hist,
        job::{Job, JobStats},
        point::Origin,
        tables::{SCHED, Sched},
    },
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const SECOND: u64 = 1_000_000_000;

fn limit_file_size(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}

fn interval(at: u64) -> Pending {
    let mut sched = Group::unknown(&SCHED, vec![]);
    sched.set(Sched::on_cpu_ns, 1 << at);
    let buckets = (0..100).map(|index| (index, at * 1000 + index as u64));
    sched.set_hist(Sched::run_queue_wait_ns, Hist::from_buckets(1, u64::MAX, buckets));
    let jobs = vec![JobStats { job: Job::system(), groups: vec![sched] }];
    Pending { stamp_ns: at * 10 * SECOND, span_ns: 10 * SECOND, jobs, facts: vec![] }
}

/// One tick of an agent.
fn tick(spool: &mut Spool, backlog: &mut Backlog, at: u64) -> Result<(), String> {
    assert!(backlog.push(interval(at)).is_empty());
    if !backlog.is_due() {
        return Ok(());
    }
    let origin = Origin { cluster: String::new(), host: "n".into() };
    let mut lines = Vec::new();
    for Pending { stamp_ns, span_ns, jobs, .. } in backlog.pending() {
        for stats in jobs {
            let style = BucketStyle::Le;
            lines.extend(points(&origin, stats, Profile::Full, style, *stamp_ns, *span_ns));
        }
    }
    let start_ns = backlog.pending().next().unwrap().start_ns();
    match spool.prepare(&lines, None, start_ns, at * 10 * SECOND) {
        Ok(prepared) => {
            backlog.written();
            spool.publish(prepared).map_err(|error| format!("{error:#}"))
        }
        Err(error) => {
            backlog.failed();
            Err(format!("{error:#}"))
        }
    }
}

#[test]
fn what_a_full_disk_held_up_is_written_when_there_is_room_again() {
    // SAFETY: ignoring a signal runs no handler; no other thread relies on this one.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let tmp = tempfile::tempdir().unwrap();
    let writer = Writer { host: "n".into(), boot_id: "1".into(), pid: 1 };
    let mut spool = Spool::open(tmp.path(), Limits::default(), &writer).unwrap();
    let mut backlog = Backlog::new(Caps { intervals: 4, ..Caps::default() });
    let files = |dir: &str| fs::read_dir(tmp.path().join(dir)).unwrap().count();

    tick(&mut spool, &mut backlog, 1).unwrap();
    assert_eq!(files("outbox"), 1);

    limit_file_size(Some(256));
    let failures: Vec<_> =
        (2..12).filter_map(|at| tick(&mut spool, &mut backlog, at).err()).collect();
    limit_file_size(None);
    assert_eq!(failures.len(), 4, "at the ticks 2, 3, 5 and 9: {failures:?}");
    let expected = format!(
        "cannot write to the spool {}: raise the limit on the size of",
        tmp.path().display()
    );
    assert!(failures.iter().all(|error| error.starts_with(&expected)), "{failures:?}");
    assert_eq!((files("outbox"), files("tmp")), (1, 0), "no half file");
    assert_eq!((backlog.pending().count(), backlog.merged()), (4, 6));

    (12..18).for_each(|at| tick(&mut spool, &mut backlog, at).unwrap());
    assert_eq!(backlog.pending().count(), 0);
    let (mut on_cpu_ns, mut span_ns, mut waits, mut lines) = (0, 0, 0, 0);
    for entry in fs::read_dir(tmp.path().join("outbox")).unwrap() {
        let mut text = String::new();
        let file = fs::File::open(entry.unwrap().path()).unwrap();
        MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
        let number = |line: &str, field: &str| {
            let (_, rest) = line.split_once(&format!("{field}=")).unwrap();
            rest.split_once('i').unwrap().0.parse::<u64>().unwrap()
        };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if line.starts_with("job_hist,") {
                waits += number(line, " n");
            } else {
                on_cpu_ns += number(line, "on_cpu_ns");
                span_ns += number(line, "interval_ns");
                lines += 1;
            }
        }
    }
    assert_eq!(on_cpu_ns, (1..18).map(|at| 1 << at).sum::<u64>());
    assert_eq!(waits, (1..18).map(|at| at * 100_000 + 4950).sum::<u64>());
    assert_eq!((span_ns, lines), (17 * 10 * SECOND, 17 - backlog.merged()));
}
