//! How much longer a job that does little but read takes while its calls are counted: by `jobtrace run --io`, by
//! others' means, and beside another's job that is counted. Each run lies between two plain ones.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;
use xtask::markdown::Table;

use super::darshan::Darshan;
use super::io::{Beside, Loads};
use super::io_told::{self, Told};
use super::pairs::Pairs;
use crate::process::{find, output, say};

/// Pairs of each.
const PAIRS: usize = 9;
/// Small files that are opened, read and closed.
const FILES: u32 = 5_000;
/// Times that each of them is, as `io_loads.rs` has it.
const FILE_TURNS: u64 = 8;
/// Bytes that fio reads.
const READ_BYTES: u64 = 512 << 20;
const PAGE: u64 = 4096;
/// What may be added to the time of each job.
const MOST_RATIOS: [f64; 2] = [0.25, 0.20];
const JOBS: [&str; 2] = [
    "fio, 4 KiB random reads of a cached file (psync)",
    "5,000 files of 4 KiB, opened, read, closed",
];

/// Who counts.
#[derive(Clone, Copy, PartialEq)]
enum Counter {
    /// `jobtrace run --io`, of this job.
    Ours,
    /// The same of another.
    Beside,
    /// A program that is put before the command, and its options.
    Other(&'static str, &'static [&'static str]),
    /// A library that the command loads first.
    Darshan,
}

const COUNTERS: [(&str, Counter); 5] = [
    ("`jobtrace run --io`", Counter::Ours),
    ("`jobtrace run --io` of another job", Counter::Beside),
    ("`perf trace -s`", Counter::Other("perf", &["trace", "-s", "-o", "/dev/null", "--"])),
    ("`strace -f -c`", Counter::Other("strace", &["-f", "-c", "-o", "/dev/null"])),
    ("Darshan, of one process, without MPI", Counter::Darshan),
];

/// Measures all jobs with all counters: a table of what they cost, and one of what they tell.
///
/// # Errors
/// When a job or a counter fails.
pub fn measure(jobtrace: &Path, loads: &Loads, scratch: &Path) -> Result<[Table; 2]> {
    let (darshan, mut told) = (Darshan::find(scratch)?, io_told::table());
    let mut table = Table::new("job | counted by | >without, ns | >slower by | >95 %");
    for (job, name) in JOBS.iter().enumerate() {
        let time = |before: &[&str]| match job {
            0 => fio(before, scratch),
            _ => loads.files(before, FILES, scratch),
        };
        // The first run finds cold caches and makes the files.
        time(&[])?;
        for (counter, how) in COUNTERS {
            let is_missing = match how {
                Counter::Other(program, _) => find(program).is_none(),
                Counter::Darshan => darshan.is_none(),
                Counter::Ours | Counter::Beside => false,
            };
            if is_missing {
                table.row([name, &counter, &"not installed", &"", &""]);
                continue;
            }
            say(format_args!("{name}: {counter}"));
            let pairs = pairs(PAIRS, |is_counted| match how {
                _ if !is_counted => time(&[]),
                Counter::Ours => {
                    let program = jobtrace.to_str().context("a path that is no text")?;
                    time(&[program, "run", "--io", "--quiet", "--"])
                }
                Counter::Beside => {
                    let beside = Beside::start(jobtrace, scratch)?;
                    let time = time(&[]);
                    beside.end()?;
                    time
                }
                Counter::Other(program, options) => time(&[&[program], options].concat()),
                Counter::Darshan => {
                    let darshan = darshan.as_ref().context("Darshan")?;
                    time(&darshan.before()?.each_ref().map(String::as_str))
                }
            })?;
            let most = (how == Counter::Ours).then_some(MOST_RATIOS[job]);
            let [without, slower, interval] = in_words(&pairs, most);
            table.row([name, &counter, &without, &slower, &interval]);
        }
        io_told::add(&mut told, name, truth(job), [jobtrace, scratch], darshan.as_ref(), time)?;
    }
    Ok([table, told])
}

/// What a job does on its files.
fn truth(job: usize) -> Told {
    let files = u64::from(FILES) * FILE_TURNS;
    match job {
        // How often fio opens its file is its own affair.
        0 => told(None, READ_BYTES / PAGE, READ_BYTES),
        _ => told(Some(files), files, files * PAGE),
    }
}

fn told(opens: Option<u64>, reads: u64, read_bytes: u64) -> Told {
    Told { opens, reads: Some(reads), read_bytes: Some(read_bytes), is_incomplete: false }
}

/// `count` pairs of a run that is counted and the mean of the two plain ones around it.
///
/// # Errors
/// When a run fails.
pub fn pairs(count: usize, time: impl Fn(bool) -> Result<f64>) -> Result<Pairs> {
    let mut pairs = Pairs::default();
    let mut before_ns = time(false)?;
    for _ in 0..count {
        let with_ns = time(true)?;
        let after_ns = time(false)?;
        pairs.add(f64::midpoint(before_ns, after_ns), with_ns);
        before_ns = after_ns;
    }
    Ok(pairs)
}

/// Time without, the slowdown, and where its median lies; whether it is within `most`.
fn in_words(pairs: &Pairs, most: Option<f64>) -> [String; 3] {
    let without = pairs.off_ns().map_or(f64::NAN, |off| off.median);
    let slower = pairs.slowdown_ratio().map_or(f64::NAN, |ratio| ratio.median);
    let missed = most.is_some_and(|most| slower > most);
    let said = match slower {
        times if times >= 2.0 => format!("× {:.1}", times + 1.0),
        ratio => format!("{:+.0} %", ratio * 100.0),
    };
    let (low, high) = pairs.slowdown_interval().unwrap_or((f64::NAN, f64::NAN));
    let interval = format!("{:+.0} to {:+.0} %", low * 100.0, high * 100.0);
    [format!("{without:.0}"), said + if missed { " (goal missed)" } else { "" }, interval]
}

/// Nanoseconds that fio, with `before` before it, takes for a read.
fn fio(before: &[&str], scratch: &Path) -> Result<f64> {
    let file = format!("--filename={}", scratch.join("fio").display());
    let report = scratch.join("fio.json");
    let told = format!("--output={}", report.display());
    let amount = format!("--io_size={READ_BYTES}");
    let words = [
        "fio",
        "--name=reads",
        "--rw=randread",
        "--ioengine=psync",
        "--bs=4k",
        "--size=64m",
        &amount,
        "--invalidate=0",
        "--thread",
        "--output-format=json",
        &file,
        &told,
    ];
    run(before, &words)?;
    let text = std::fs::read(&report).context("fio wrote no report")?;
    let json: Value = serde_json::from_slice(&text).context("fio's report is no JSON")?;
    let read = &json["jobs"][0]["read"];
    let figures = read["runtime"].as_f64().zip(read["total_ios"].as_f64());
    let (runtime_ms, reads) = figures.context("fio's report has no reads")?;
    Ok(runtime_ms * 1e6 / reads)
}

/// Runs `words` with `before` before them; gives what they print.
///
/// # Errors
/// When they fail.
pub fn run(before: &[&str], words: &[&str]) -> Result<String> {
    let all = [before, words].concat();
    let (program, arguments) = all.split_first().context("a program")?;
    output(Command::new(program).args(arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counted_run_is_compared_with_the_plain_ones_around_it() {
        let runs = std::cell::Cell::new(0_u32);
        let pairs = pairs(PAIRS, |is_counted| {
            runs.set(runs.get() + 1);
            // It gets slower all the time.
            Ok(f64::from(100 + runs.get()) * if is_counted { 1.5 } else { 1.0 })
        });
        let [_, slower, interval] = in_words(&pairs.expect("runs"), Some(0.4));
        assert_eq!((&*slower, &*interval), ("+50 % (goal missed)", "+50 to +50 %"));
        assert_eq!(runs.get() as usize, 2 * PAIRS + 1);
    }

    #[test]
    fn the_files_are_read_as_often_as_their_program_says() {
        assert_eq!(FILE_TURNS, u64::from(crate::bench::io_loads::TURNS));
    }

    #[test]
    fn much_slower_is_told_as_a_factor() {
        let mut pairs = Pairs::default();
        (0..9).for_each(|_| pairs.add(100.0, 2900.0));
        assert_eq!(in_words(&pairs, None)[1], "× 29.0");
    }
}
