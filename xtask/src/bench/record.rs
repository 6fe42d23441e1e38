//! What the record of a job costs the agent: the time to add an interval to it, the time of the thread that saves it,
//! its size in memory and on the disk, and how many the disk takes in a second. No BPF, no root.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use jobtrace::{
    model::{
        group::Group,
        hist::Hist,
        info::JobInfo,
        job::Job,
        point::Origin,
        tables::{self, Memory, Sched},
    },
    record::{Record, file, store::Store},
};
use tracer_ebpf::table::{Kind, Measurement};
use xtask::{machine, markdown::Table, sections};

use crate::{
    bench::{pairs::spread, state},
    process::{is_optimised, say, target_dir},
};

/// Intervals of a job, each of ten seconds: an hour, a day, a month.
const LENGTHS: [(&str, u64); 3] = [("1 h", 360), ("24 h", 8_640), ("30 d", 259_200)];
/// Length of an interval.
pub const INTERVAL_NS: u64 = 10_000_000_000;
/// Most that an interval of a job may cost, and that its timeline may take.
const MOST_NS: f64 = 10_000.0;
const MOST_TIMELINE_BYTES: usize = 6_000;
/// Encodings and decodings that are timed; the median counts.
const ROUNDS: usize = 25;

/// One row.
struct Row {
    name: &'static str,
    add_ns: f64,
    encode_ns: f64,
    decode_ns: f64,
    timeline_bytes: usize,
    file_bytes: usize,
}

/// Measures and prints it; into docs/SIZING.md where `write`.
///
/// # Errors
/// When it is above its limits, or the document cannot be written.
pub fn run(write: bool) -> Result<()> {
    if !is_optimised()? {
        return Ok(());
    }
    let mut rows = Vec::new();
    for (name, intervals) in LENGTHS {
        say(format_args!("a job of {name}"));
        rows.push(measure(name, intervals)?);
    }
    let text = document(&rows, &saved()?, &machine::describe()?);
    let states = state::measure()?;
    let state_text = format!("{}.\n\n{}", machine::describe()?, state::document(&states));
    print!("{text}\n{state_text}");
    if write {
        sections::write("docs/SIZING.md", &[("record", text), ("state", state_text)])?;
    }
    state::check(&states)?;
    for row in rows {
        let (name, ns, bytes) = (row.name, row.add_ns, row.timeline_bytes);
        ensure!(ns <= MOST_NS, "an interval of a job of {name} costs {ns:.0} ns");
        let most = MOST_TIMELINE_BYTES;
        ensure!(bytes <= most, "the timeline of a job of {name} takes {bytes} bytes of {most}");
    }
    Ok(())
}

fn measure(name: &'static str, intervals: u64) -> Result<Row> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    // The same kinds of intervals as a job of two disks and one GPU; made before the clock runs.
    let all: Vec<Vec<Group>> = (0..64).map(|_| interval(&mut random)).collect();
    let origin = Origin { host: "n1".into(), ..Origin::default() };
    let mut record = Record::new(&origin, Job::default(), JobInfo::default(), 1_795_305_600 << 30);
    let begin = Instant::now();
    for at in 0..intervals {
        record.add(INTERVAL_NS, &all[at as usize % all.len()], &[]);
    }
    let add_ns = begin.elapsed().as_nanos() as f64 / intervals as f64;
    let timed = |work: &dyn Fn() -> Result<()>| -> Result<f64> {
        let once = || -> Result<f64> {
            let begin = Instant::now();
            work()?;
            Ok(begin.elapsed().as_nanos() as f64)
        };
        let all = (0..ROUNDS).map(|_| once()).collect::<Result<Vec<_>>>()?;
        Ok(spread(all.into_iter()).map_or(0.0, |spread| spread.median))
    };
    let bytes = file::encode(&record)?;
    ensure!(file::decode(&bytes)?.timeline == record.timeline, "it is not read as it was written");
    Ok(Row {
        name,
        add_ns,
        encode_ns: timed(&|| file::encode(&record).map(|bytes| drop(black_box(bytes))))?,
        decode_ns: timed(&|| file::decode(&bytes).map(|record| drop(black_box(record))))?,
        timeline_bytes: record.timeline.memory_bytes(),
        file_bytes: bytes.len(),
    })
}

/// Saves records of a day's jobs one by one, and in batches as the agent does; each per second.
fn saved() -> Result<[f64; 2]> {
    let target = target_dir();
    let dir = tempfile::tempdir_in(&target)?;
    let store = Store::open_for_users(dir.path(), "n1")?;
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let all: Vec<Vec<Group>> = (0..64).map(|_| interval(&mut random)).collect();
    let origin = Origin { host: "n1".into(), ..Origin::default() };
    let record = |number: u64| {
        let job = Job { job: number.to_string(), manager: "slurm".into(), ..Job::default() };
        let begin_ns = (1_795_305_600 << 30) + number;
        let mut record = Record::new(&origin, job, JobInfo::default(), begin_ns);
        (0..360).for_each(|at| record.add(INTERVAL_NS, &all[at % all.len()], &[]));
        record
    };
    let mut number = 0;
    let mut per_second = |batch: usize, batches: usize| -> Result<f64> {
        let mut took = Duration::ZERO;
        for _ in 0..batches {
            let records: Vec<_> = (0..batch as u64).map(|at| record(number + at)).collect();
            number += batch as u64;
            let records: Vec<_> = records.iter().collect();
            let begin = Instant::now();
            store.save_all(&records).into_iter().collect::<Result<()>>()?;
            took += begin.elapsed();
        }
        Ok((batch * batches) as f64 / took.as_secs_f64())
    };
    Ok([per_second(1, 100)?, per_second(128, 16)?])
}

/// What a job did in ten seconds: every field known, two disks and two operations, two families, one GPU.
pub fn interval(random: &mut u64) -> Vec<Group> {
    let mut next = || {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        *random
    };
    let mut groups = Vec::new();
    let series: [(&'static Measurement, &[&[&str]]); 8] = [
        (&tables::SCHED, &[&[]]),
        (&tables::FAULT, &[&[]]),
        (
            &tables::BLOCK,
            &[&["vda", "read"], &["vda", "write"], &["vdb", "read"], &["vdb", "write"]],
        ),
        (&tables::WAIT, &[&["read", "ext4", "/"], &["open", "nfs4", "/home"]]),
        (&tables::NET, &[&["tcp"], &["unix"]]),
        (&tables::MEMORY, &[&[]]),
        (&tables::CPU, &[&[]]),
        (&tables::GPU, &[&["0", "GPU-8932f937", "H100", "nvidia", ""]]),
    ];
    for (table, all) in series {
        for tags in all {
            let mut group =
                Group::unknown(table, tags.iter().map(|tag| (*tag).to_owned()).collect());
            for (field, value) in table.fields.iter().zip(&mut group.values) {
                *value = Some(match field.kind {
                    Kind::Histogram => {
                        let mut hist = Hist::default();
                        (0..20).for_each(|_| hist.record((64 << (next() % 24)) | (next() % 4096)));
                        jobtrace::model::group::Value::Histogram(hist)
                    }
                    _ => jobtrace::model::group::Value::Number(next() % (64 << 20)),
                });
            }
            if group.is(&tables::SCHED) {
                // Some of 64 cores.
                group.set(Sched::on_cpu_ns, 32 * INTERVAL_NS + next() % (32 * INTERVAL_NS));
            }
            if group.is(&tables::MEMORY) {
                group.set(Memory::anon_bytes, (64 << 30) + next() % (1 << 30));
            }
            groups.push(group);
        }
    }
    groups
}

fn document(rows: &[Row], [single, batch]: &[f64; 2], machine: &str) -> String {
    let mut table = Table::new(
        "job of | >an interval added | >record encoded | >record decoded | >timeline in memory | >file",
    );
    for row in rows {
        let us = |ns: f64| format!("{:.1} µs", ns / 1e3);
        let kb = |bytes: usize| format!("{:.1} kB", bytes as f64 / 1e3);
        table.row([
            &row.name as &dyn std::fmt::Display,
            &us(row.add_ns),
            &us(row.encode_ns),
            &us(row.decode_ns),
            &kb(row.timeline_bytes),
            &kb(row.file_bytes),
        ]);
    }
    format!(
        "{machine}.\n\n{table}\nSaved, on this disk, records of jobs of 1 h: {single:.0} a second one by one, {batch:.0} in batches of 128.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_job_is_measured() {
        let row = measure("x", 300).unwrap();
        assert!(row.add_ns > 0.0 && row.encode_ns > row.add_ns && row.decode_ns > 0.0);
        assert!((1_000..64_000).contains(&row.file_bytes), "{}", row.file_bytes);
        assert_eq!(
            document(&[row], &[1.0, 2.0], "m")
                .lines()
                .filter(|line| line.starts_with("| x |"))
                .count(),
            1
        );
    }
}
