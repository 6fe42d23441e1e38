//! What every check uses: its rows, workloads that are jobs, and the sampler that is checked.

use std::{
    cell::Cell,
    env,
    ops::RangeInclusive,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use jobtrace::{
    base::clock::monotonic_ns,
    gpu::{Ending, ProcessReading, Sampler, SamplerSettings},
    model::{group::Group, hist::Hist, tables::Gpu},
};
use jobtrace_tests::rig::daemon::die_with_us;
use tracer_ebpf::handle::{Handle, Number};

use crate::truth;

/// Memory that a workload holds, and what a context of CUDA's takes beside it at most.
pub const HELD_MIB: u32 = 1024;
const CONTEXT_MIB: u32 = 1024;
/// How long anything may take that must come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Exit statuses: something was not as it must be; all that could be checked was, and something could not.
const WRONG: u8 = 1;
const LEFT_OUT: u8 = 2;
/// Enough readings to have an opinion.
pub const SEVERAL: u64 = 3;

/// The checks so far, and how they are made.
pub struct Check {
    /// Where the programs are.
    pub folder: PathBuf,
    /// All times are shorter by this, against a driver whose times are, too.
    pub faster: u32,
    /// The GPU that is checked, as CUDA names it too.
    gpu: Option<String>,
    sampler: Option<Sampler<u32>>,
    wrong: u32,
    left_out: u32,
}

/// What a job does: holds memory, and is busy for a part of each period, of times as on a real device.
#[derive(Clone, Copy)]
pub struct Work {
    pub period_ms: u32,
    /// Percent of each period that pass before it is busy.
    pub from: u32,
    /// Percent of each period.
    pub percent: u32,
    pub mib: u32,
}

impl Work {
    /// What it is where only its memory matters.
    pub const HALF: Self = Self { period_ms: 100, from: 0, percent: 50, mib: HELD_MIB };
    /// What hardly does anything.
    pub const LITTLE: Self = Self { period_ms: 100, from: 0, percent: 10, mib: 16 };
}

/// A workload: a process group, which is the job.
pub struct Running(Child);

impl Running {
    pub fn job(&self) -> u32 {
        self.0.id()
    }

    pub fn finish(mut self) {
        self.0.wait().expect("the workload can be waited for");
    }

    pub fn kill(mut self) {
        self.0.kill().and_then(|()| self.0.wait()).expect("the workload can be killed");
    }
}

impl Check {
    /// Nothing is checked yet, and nothing sampled.
    pub fn new(folder: PathBuf) -> Self {
        let faster = env::var("GPU_CHECK_FASTER").ok().and_then(|text| text.parse().ok());
        let (faster, gpu) = (faster.unwrap_or(1), truth::uuid());
        Self { folder, faster, gpu, sampler: None, wrong: 0, left_out: 0 }
    }

    /// So many seconds, or less where all is faster.
    pub fn seconds(&self, seconds: u32) -> Duration {
        Duration::from_secs(seconds.into()) / self.faster
    }

    /// Prints what was found; what is not known is wrong.
    pub fn row(&mut self, what: &str, found: Option<f64>, unit: &str, is: RangeInclusive<f64>) {
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        let (least, most) = (shown(*is.start()), shown(*is.end()));
        let expected = match (least == most, is.start().is_finite()) {
            (true, _) => format!("must be {least}"),
            (false, true) => format!("must be from {least} to {most}"),
            (false, false) => format!("must be at most {most}"),
        };
        let told = found.map_or("unknown".into(), |found| format!("{}{unit}", shown(found)));
        let is_so = found.is_some_and(|found| is.contains(&found));
        println!("{:5} {what}: {told} ({expected})", if is_so { "ok" } else { "WRONG" });
        self.wrong += u32::from(!is_so);
    }

    /// Says what is wrong with all of it.
    pub fn wrong(&mut self, what: &str, why: &str) {
        println!("WRONG {what}: {why}");
        self.wrong += 1;
    }

    /// Says what cannot be checked here.
    pub fn left_out(&mut self, what: &str, why: &str) {
        println!("left out: {what} ({why})");
        self.left_out += 1;
    }

    /// Adds the rows of another process's, by its exit status.
    pub fn add(&mut self, status: ExitStatus) {
        match status.code() {
            Some(0) => {}
            Some(code) if code == i32::from(LEFT_OUT) => self.left_out += 1,
            _ => self.wrong += 1,
        }
    }

    /// What came of all rows, for who reads it.
    pub fn summary(&self) -> String {
        format!("{} wrong, {} left out", self.wrong, self.left_out)
    }

    /// The same as the exit status.
    pub fn code(&self) -> u8 {
        match (self.wrong, self.left_out) {
            (0, 0) => 0,
            (0, _) => LEFT_OUT,
            _ => WRONG,
        }
    }

    /// Begins to sample, or begins anew, as after SIGHUP.
    pub fn sample(&mut self) {
        let before: Option<Ending> = self.sampler.take().map(Sampler::end);
        let settings = SamplerSettings { period: self.seconds(1), ..SamplerSettings::default() };
        let owner = |process: &ProcessReading| group_of(process.pid);
        self.sampler = Some(Sampler::start_after(before, settings, owner).expect("a thread more"));
    }

    /// Begins to sample where it does not yet.
    pub fn sample_on(&mut self) {
        if self.sampler.is_none() {
            self.sample();
        }
    }

    /// Lets go of the driver.
    pub fn stop_sampling(&mut self) {
        self.sampler = None;
    }

    pub fn sampler(&self) -> &Sampler<u32> {
        self.sampler.as_ref().expect("it samples")
    }

    /// Starts the workload as a job of its own, or in that of another one. `before` are the words of a command
    /// that runs it.
    pub fn start(&self, before: &[&str], words: &[&str], job: Option<&Running>) -> Running {
        let work = self.folder.join("cuda_work");
        let work = work.to_str().expect("a path that can be read");
        let all = [before, &[work], words].concat();
        let mut command = Command::new(all[0]);
        command.args(&all[1..]).stdout(Stdio::null());
        command.envs(self.gpu.iter().map(|uuid| ("CUDA_VISIBLE_DEVICES", uuid)));
        command.process_group(job.map_or(0, |of| of.job() as i32));
        die_with_us(&mut command);
        Running(command.spawn().unwrap_or_else(|error| panic!("{}: {error}", all[0])))
    }

    /// A job that works for so many seconds.
    pub fn spin(&self, seconds: u32, work: Work) -> Running {
        self.spin_by(&[], seconds, work)
    }

    /// The same, through another command.
    pub fn spin_by(&self, before: &[&str], seconds: u32, work: Work) -> Running {
        let Work { period_ms, from, percent, mib } = work;
        let milliseconds = self.seconds(seconds).as_millis() as u32;
        let words = [milliseconds, period_ms / self.faster, from, percent, mib];
        let words = words.map(|word| word.to_string());
        let words: Vec<&str> =
            ["spin"].into_iter().chain(words.iter().map(String::as_str)).collect();
        self.start(before, &words, None)
    }

    /// What the job did to the GPU up to now, then its errors by code; nothing of one that was never there.
    pub fn groups(&self, job: u32) -> Vec<Group> {
        // Whose tasks did what meanwhile is not asked here: how long it was busy is.
        self.sampler().look(&job, monotonic_ns(), None);
        self.sampler().groups_for(&job, monotonic_ns())
    }

    /// What the job did to the GPU up to now.
    pub fn group(&self, job: u32) -> Option<Group> {
        self.groups(job).into_iter().next()
    }

    /// A value of the job's.
    pub fn number(&self, job: u32, field: Handle<Number>) -> Option<u64> {
        self.group(job)?.number(field)
    }

    /// Waits until the job has been seen on the GPU for a while; whether it was.
    pub fn is_seen(&self, job: u32) -> bool {
        self.comes(|| {
            self.group(job)
                .is_some_and(|group| group.hist(Gpu::power_watts).map_or(0, Hist::count) >= SEVERAL)
        })
    }

    /// Waits until it is so; whether it was in time.
    pub fn comes(&self, is_so: impl Fn() -> bool) -> bool {
        let begin = Instant::now();
        while !is_so() {
            if begin.elapsed() > PATIENCE / self.faster {
                return false;
            }
            sleep(Duration::from_millis(2));
        }
        true
    }

    /// Waits for a reading that begins from now on, or at least ends; whether it came.
    pub fn next_reading(&self) -> bool {
        let before = self.sampler().cost().readings;
        self.comes(|| self.sampler().cost().readings > before)
    }

    /// Waits until there are some and their number has not changed for several readings: drivers open one file after
    /// the other. The last number where it never stands still.
    pub fn settled(&self, number: impl Fn() -> usize) -> usize {
        let last = Cell::new((number(), Instant::now()));
        self.comes(|| {
            let (before, since) = last.get();
            let now = number();
            if now != before {
                last.set((now, Instant::now()));
                return false;
            }
            now > 0 && since.elapsed() >= self.seconds(SEVERAL as u32)
        });
        last.get().0
    }

    /// A row for the memory of a job that holds `HELD_MIB`.
    pub fn memory_row(&mut self, what: &str, bytes: Option<u64>) {
        let mib = bytes.map(|bytes| (bytes >> 20) as f64);
        self.row(what, mib, "MiB", f64::from(HELD_MIB)..=f64::from(HELD_MIB + CONTEXT_MIB));
    }

    /// Whether a job is seen, with its memory, and alone; by the name of where it runs.
    pub fn seen_rows(&mut self, place: &str, job: u32) {
        self.is_seen(job);
        let peak = self.number(job, Gpu::memory_peak_bytes);
        self.memory_row(&format!("{place}: memory of the job"), peak);
        let shared = self.number(job, Gpu::readings_shared).map(|count| count as f64);
        self.row(&format!("{place}: readings with others on the GPU"), shared, "", 0.0..=0.0);
    }
}

/// Share of the time in which the GPU was busy while the job had it, in percent.
pub fn percent_busy(group: &Group) -> Option<f64> {
    let held_ns = group.number(Gpu::held_ns).filter(|ns| *ns > 0)?;
    Some(group.number(Gpu::busy_ns)? as f64 / held_ns as f64 * 100.0)
}

/// Of the process group, which is the job.
fn group_of(pid: u32) -> Option<u32> {
    // SAFETY: no pointers. Of one that has gone it is -1, of the kernel's own threads 0.
    let group = unsafe { libc::getpgid(pid as i32) };
    u32::try_from(group).ok().filter(|group| *group > 0)
}

/// With two digits at most behind the point.
fn shown(number: f64) -> String {
    let text = format!("{number:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}
