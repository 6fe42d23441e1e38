//! What every check uses: its rows, workloads that are jobs, and the sampler that is checked.

use std::{
    env,
    ops::RangeInclusive,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
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

/// Memory that a workload holds, and what a context of CUDA's takes beside it at most.
pub const HELD_MIB: u32 = 1024;
const CONTEXT_MIB: u32 = 1024;
/// How long anything may take that must come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Enough readings to have an opinion.
pub const SEVERAL: u64 = 3;

/// The checks so far, and how they are made.
pub struct Check {
    /// Where the programs are.
    pub folder: PathBuf,
    /// All times are shorter by this, against a driver whose times are, too.
    pub faster: u32,
    sampler: Option<Sampler<u32>>,
    wrong: u32,
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
        Self { folder, faster: faster.unwrap_or(1), sampler: None, wrong: 0 }
    }

    /// So many seconds, or less where all is faster.
    pub fn seconds(&self, seconds: u32) -> Duration {
        Duration::from_secs(seconds.into()) / self.faster
    }

    /// Prints what was found; what is not known is wrong.
    pub fn row(&mut self, what: &str, found: Option<f64>, unit: &str, is: RangeInclusive<f64>) {
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        let expected = match is.start() == is.end() {
            true => format!("must be {}", shown(*is.start())),
            false => format!("must be from {} to {}", shown(*is.start()), shown(*is.end())),
        };
        let told = found.map_or("unknown".into(), |found| format!("{}{unit}", shown(found)));
        let is_so = found.is_some_and(|found| is.contains(&found));
        println!("{:5} {what}: {told} ({expected})", if is_so { "ok" } else { "WRONG" });
        self.wrong += u32::from(!is_so);
    }

    /// Says what cannot be checked here.
    pub fn left_out(&self, what: &str, why: &str) {
        println!("left out: {what} ({why})");
    }

    /// Adds the rows of another process's.
    pub fn add(&mut self, went_well: bool) {
        self.wrong += u32::from(!went_well);
    }

    /// Rows that were wrong.
    pub fn wrong(&self) -> u32 {
        self.wrong
    }

    /// Begins to sample, or begins anew, as after SIGHUP.
    pub fn sample(&mut self) {
        let before: Option<Ending> = self.sampler.take().map(Sampler::end);
        let settings = SamplerSettings { period: self.seconds(1), ..SamplerSettings::default() };
        let owner = |process: &ProcessReading| group_of(process.pid);
        self.sampler = Some(Sampler::start_after(before, settings, owner).expect("a thread more"));
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
        command.process_group(job.map_or(0, |of| of.job() as i32));
        die_with_us(&mut command);
        Running(command.spawn().unwrap_or_else(|error| panic!("{}: {error}", all[0])))
    }

    /// A job that holds memory and is busy for a part of each period, of times as on a real device.
    pub fn spin(&self, seconds: u32, period_ms: u32, percent: u32, mib: u32) -> Running {
        self.spin_by(&[], seconds, period_ms, percent, mib)
    }

    /// The same, through another command.
    pub fn spin_by(
        &self,
        before: &[&str],
        seconds: u32,
        period_ms: u32,
        percent: u32,
        mib: u32,
    ) -> Running {
        let milliseconds = self.seconds(seconds).as_millis().to_string();
        let period_ms = (period_ms / self.faster).to_string();
        let (percent, mib) = (percent.to_string(), mib.to_string());
        self.start(before, &["spin", &milliseconds, &period_ms, &percent, &mib], None)
    }

    /// What the job did to the GPU up to now; nothing of one that was never there.
    pub fn group(&self, job: u32) -> Option<Group> {
        // Whose tasks did what meanwhile is not asked here: how long it was busy is.
        self.sampler().look(&job, monotonic_ns(), None);
        self.sampler().groups_for(&job, monotonic_ns()).into_iter().next()
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

    /// Waits for a reading that begins from now on, or at least ends.
    pub fn next_reading(&self) {
        let before = self.sampler().cost().readings;
        self.comes(|| self.sampler().cost().readings > before);
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
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
