//! A recording, which anybody may hand to `jobtrace run --replay`: read to its end or refused, and all
//! that is made of it (summary, JSON, line protocol, interval logs) is sound.

use std::{
    fs::File,
    io::{Seek, Write},
    os::fd::AsRawFd,
    path::PathBuf,
};

use jobtrace::{
    lines::{hlog, profile},
    model::{
        hist_points::hist_points,
        job::{Job, attribute},
        points::{info_point, job_points},
        snapshot::Snapshot,
        source::Source,
    },
    record::{Record, document::document, parse},
    replay::{Header, Replay},
    view::{Style, render},
};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::lines;

pub fn run(data: &[u8]) {
    // Unpacked it is bounded line by line only; an input of ours is small.
    let mut file = File::from(memfd_create("recording", MemfdFlags::CLOEXEC).expect("a memfd"));
    file.write_all(data).and_then(|()| file.rewind()).expect("memory");
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let Ok(mut replay) = Replay::open(&path) else { return };
    let header = replay.header().clone();
    let Some(job) = header.jobs.values().next().cloned() else { return };
    let info = header.info.clone();
    let mut record = Record::new(&header.origin, job.clone(), info, header.info.start_wall_ns);
    let mut previous: Option<Snapshot> = None;
    while let Ok(Some(snapshot)) = replay.snapshot() {
        if let Some(previous) = &previous {
            interval(&header, &job, &snapshot, previous, &mut record);
        }
        previous = Some(snapshot);
    }
    let totals = &mut record.totals;
    totals.exit = replay.end().map(|end| end.exit);
    totals.notes = replay.notes().to_vec();
    let end = replay.end().map(|end| (end.wall_ns, end.exit));
    lines::sound(&[info_point(&header.origin, &job, &header.info, end, None, 1)]);
    let document = document(&record).expect("a document");
    serde_json::from_str::<serde_json::Value>(&document).expect("JSON");
    // Of a recording that adds up to more than any node counts, it is refused.
    drop(parse(document.as_bytes()));
    for width in [40, 100] {
        for unicode in [false, true] {
            let screen = render(&record.totals, &Style { width, color: false, unicode });
            let harmless = screen.chars().all(|c| c == '\n' || !c.is_control());
            assert!(harmless && (unicode || screen.is_ascii()), "{screen}");
        }
    }
}

fn interval(
    header: &Header,
    job: &Job,
    snapshot: &Snapshot,
    previous: &Snapshot,
    record: &mut Record,
) {
    let interval = snapshot.since(previous);
    let jobs = attribute(interval.slots.clone(), |lease| header.jobs.get(&lease));
    let mine = jobs.iter().find(|stats| stats.job == *job);
    record.add(interval.span_ns, mine.map_or(&[][..], |stats| &stats.groups), &interval.own);
    for stats in &jobs {
        let mut points = job_points(&header.origin, stats, interval.end_wall_ns);
        points.extend(hist_points(&header.origin, stats, interval.end_wall_ns));
        lines::sound(&points);
        for style in [profile::BucketStyle::Prom, profile::BucketStyle::Vmrange] {
            let origin = &header.origin;
            lines::sound(&profile::points(origin, stats, profile::Profile::Full, style, 1, 1));
        }
    }
    let whole = hlog::HlogInterval { start_wall_ns: 1, span_ns: interval.span_ns, jobs: &jobs };
    let log = hlog::document(&[whole]).expect("a log");
    assert!(log.ends_with(hlog::END));
    let kept = serde_json::to_vec(snapshot).expect("a line");
    let again: Snapshot = serde_json::from_slice(&kept).expect("what was written is read");
    assert_eq!(&again, snapshot);
}
