//! The jobs of a soak, one after the other in each of a few crews, and what the kernel says that each did
//! before its cgroups are removed.

use std::{
    fs,
    path::Path,
    process::Stdio,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use crate::{
    account::Report,
    rig::shaped::{Directories, Shaped},
    rig::workload::{report, workload},
};

/// A crew begins a job so often, unless one takes longer.
const PERIOD: Duration = Duration::from_millis(800);
/// How long a job lives that is to go on over the ends of agents: one of a crew's so many.
const LONG: Duration = Duration::from_secs(45);
const LONG_EVERY: usize = 40;
/// Nobody.
const UID: u32 = 65_534;

/// Threads that run jobs, and what they share.
#[derive(Debug)]
pub struct Crew<'a> {
    shaped: &'a Shaped,
    device: String,
    next: AtomicU32,
}

/// A job that has ended.
#[derive(Debug)]
pub struct Done {
    /// Its number.
    pub job: u32,
    /// What was run in it.
    pub kind: &'static str,
    /// Tasks made.
    pub forks: u64,
    /// Programs executed.
    pub execs: u64,
    /// Time on CPU of its cgroup.
    pub usage_ns: u64,
    /// Minor faults of all its tasks, at least and at most; `None` where nobody counted them.
    pub minor: Option<(u64, u64)>,
    /// Bytes read from and written to the disk past the page cache.
    pub bytes: [u64; 2],
    /// The same as the kernel charged it to its cgroup; `None` where it does not count that: before a
    /// limit is set on a disk, blkio of newer kernels knows nothing of it.
    pub charged: Option<[u64; 2]>,
}

impl<'a> Crew<'a> {
    /// Jobs at once.
    pub const AT_ONCE: u32 = 2;

    /// Jobs below `shaped`, whose direct transfers are with `device`.
    pub fn new(shaped: &'a Shaped, device: String) -> Self {
        Self { shaped, device, next: AtomicU32::new(1) }
    }

    /// Runs job after job until told to stop; `crew` of them.
    pub fn work(&self, crew: u32, stop: &AtomicBool) -> Result<Vec<Done>> {
        let mut done = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let begin = Instant::now();
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            // One crew's alone, so that the other goes on with short ones.
            let is_long = crew == 0 && done.len() % LONG_EVERY == 2;
            let one = self.job(number, if is_long { LONG } else { Duration::ZERO }, stop);
            done.push(one.with_context(|| format!("job {number}"))?);
            sleep(PERIOD.saturating_sub(begin.elapsed()));
        }
        Ok(done)
    }

    /// A job: workload after workload for `span`, at least one.
    fn job(&self, number: u32, span: Duration, stop: &AtomicBool) -> Result<Done> {
        let begin = Instant::now();
        let place = self.shaped.job(UID, number, "step_0");
        let mut done = Done {
            job: number,
            kind: "",
            forks: 0,
            execs: 0,
            usage_ns: 0,
            minor: Some((0, 0)),
            bytes: [0; 2],
            charged: None,
        };
        for round in 0.. {
            self.round(number + round, &place, &mut done)?;
            if begin.elapsed() >= span || stop.load(Ordering::Relaxed) {
                break;
            }
            sleep(PERIOD);
        }
        done.usage_ns = usage_ns(&place)?;
        done.charged = charged(&place, &self.device)?;
        self.shaped.remove_job(UID, number);
        Ok(done)
    }

    /// Runs one workload in the job, of a kind and a size that follow from `seed`.
    fn round(&self, seed: u32, place: &Directories, done: &mut Done) -> Result<()> {
        let text = |number: u32| number.to_string();
        let device = self.device.clone();
        let (kind, name, words): (_, _, Vec<String>) = match seed % 4 {
            0 => ("forks", "test_job", vec!["forks".into(), text(3 + seed % 61)]),
            1 => {
                let mib = seed / 4 % 9;
                done.bytes[0] += u64::from(mib) << 20;
                let words = [mib, 10 + seed % 90, 100 + seed % 4000].map(text);
                ("amounts", "amounts", [device].into_iter().chain(words).collect())
            }
            2 => {
                let (count, bytes) = (1 + seed % 50, 4096 << (seed / 4 % 5));
                done.bytes[1] += u64::from(count * bytes);
                ("writes", "transfer", vec!["write".into(), device, text(count), text(bytes)])
            }
            _ => ("faults", "touch", vec!["fresh".into(), text(2 + seed % 5000)]),
        };
        let mut command = place.command(workload(name)?);
        let output = command.args(words).stderr(Stdio::inherit()).output()?;
        ensure!(output.status.success(), "{name} failed: {output:?}");
        done.kind = if done.kind.is_empty() || done.kind == kind { kind } else { "long" };
        done.execs += 1;
        done.forks += match name {
            "test_job" => u64::from(3 + seed % 61),
            "amounts" => 1,
            "touch" => 2,
            _ => 0,
        };
        let printed = String::from_utf8_lossy(&output.stdout);
        match name {
            // It reports nothing.
            "test_job" => done.minor = None,
            _ => add_minor(&mut done.minor, &report(&printed)?),
        }
        Ok(())
    }
}

fn add_minor(sum: &mut Option<(u64, u64)>, report: &Report) {
    if let Some((low, high)) = sum {
        let range = report.range(|all| all.minor);
        *low += range.start();
        *high += range.end();
    }
}

fn file(place: &Directories, name: &str) -> Option<String> {
    place.0.iter().find_map(|directory| fs::read_to_string(directory.join(name)).ok())
}

/// By cpuacct where that is v1, else by v2.
fn usage_ns(place: &Directories) -> Result<u64> {
    if let Some(text) = file(place, "cpuacct.usage") {
        return Ok(text.trim().parse()?);
    }
    let text = file(place, "cpu.stat").context("nobody counts this cgroup's CPU time")?;
    let usec = text.lines().find_map(|line| line.strip_prefix("usage_usec "));
    Ok(usec.context("no usage_usec")?.parse::<u64>()? * 1000)
}

/// Bytes read and written by blkio where that is v1, else by v2's io.stat.
fn charged(place: &Directories, device: &str) -> Result<Option<[u64; 2]>> {
    let name = Path::new(device).file_name().context("a device has a name")?.display().to_string();
    let number = fs::read_to_string(format!("/sys/block/{name}/dev"))?;
    let v1 = file(place, "blkio.throttle.io_service_bytes").unwrap_or_default();
    let v2 = file(place, "io.stat").unwrap_or_default();
    let (mut bytes, mut is_known) = ([0; 2], false);
    for line in v1.lines().chain(v2.lines()) {
        let Some(rest) = line.strip_prefix(number.trim()) else { continue };
        let mut words = rest.split([' ', '=']).filter(|word| !word.is_empty());
        while let (Some(word), Some(value)) = (words.next(), words.next()) {
            let at = match word {
                "Read" | "rbytes" => 0,
                "Write" | "wbytes" => 1,
                _ => continue,
            };
            bytes[at] = value.parse()?;
            is_known = true;
        }
    }
    Ok(is_known.then_some(bytes))
}
