//! `gpu_check WORK [LIBRARY]`: whether what jobtrace says of a node's first NVIDIA GPU is what a workload did to
//! it. WORK is `cuda_work`, beside this program. Loads no probes and builds nothing, so that it runs wherever
//! the driver does; each line says what was found and what was expected. The exit status is 1 if one is wrong.

use std::{
    collections::BTreeMap,
    env,
    path::PathBuf,
    process::{Child, Command, ExitCode, Stdio},
    sync::{Arc, Mutex},
    thread::sleep,
    time::{Duration, Instant},
};

use jobtrace::{
    base::clock::monotonic_ns,
    gpu::{Ending, Sampler, SamplerSettings},
    model::{group::Group, tables::Gpu},
};

/// How long each kind of turns is watched: whole turns, and long enough for the seconds at both ends.
const SECONDS: u64 = 30;
/// Memory that the workload holds, and what a context of CUDA's takes beside it at most.
const HELD_MIB: u64 = 1024;
const CONTEXT_MIB: u64 = 1024;
/// How soon the driver must have noticed that a process came or went.
const SETTLED: Duration = Duration::from_secs(4);

type Jobs = Arc<Mutex<BTreeMap<u32, u32>>>;

struct Check {
    work: String,
    library: Option<PathBuf>,
    jobs: Jobs,
    sampler: Option<Sampler<u32>>,
    wrong: u32,
}

/// A workload that runs as a job of its own.
struct Running(Child);

impl Running {
    fn job(&self) -> u32 {
        self.0.id()
    }

    fn finish(mut self) {
        self.0.wait().expect("the workload can be waited for");
    }

    fn kill(mut self) {
        self.0.kill().and_then(|()| self.0.wait()).expect("the workload can be killed");
    }
}

impl Check {
    fn say(&mut self, what: &str, found: String, expected: &str, is_so: bool) {
        println!("{:5} {what}: {found} ({expected})", if is_so { "ok" } else { "WRONG" });
        self.wrong += u32::from(!is_so);
    }

    fn start(&self, after: Option<Ending>) -> Sampler<u32> {
        let jobs = Arc::clone(&self.jobs);
        let settings =
            SamplerSettings { library: self.library.clone(), ..SamplerSettings::default() };
        let owner = move |process: &jobtrace::gpu::ProcessReading| {
            jobs.lock().expect("nobody panicked").get(&process.pid).copied()
        };
        Sampler::start_after(after, settings, owner).expect("there can be a thread")
    }

    fn run(&self, words: &[&str]) -> Running {
        let child = Command::new(&self.work).args(words).stdout(Stdio::null()).spawn();
        let child = child.unwrap_or_else(|error| panic!("{}: {error}", self.work));
        self.jobs.lock().expect("nobody panicked").insert(child.id(), child.id());
        Running(child)
    }

    fn spin(&self, seconds: u64, period_ms: u64, percent: u64, mib: u64) -> Running {
        let [seconds, period_ms, percent, mib] =
            [seconds, period_ms, percent, mib].map(|number| number.to_string());
        self.run(&["spin", &seconds, &period_ms, &percent, &mib])
    }

    fn sampler(&self) -> &Sampler<u32> {
        self.sampler.as_ref().expect("it samples")
    }

    /// What the job did to the GPU up to now; nothing of one that was never there.
    fn group(&self, job: u32) -> Option<Group> {
        self.sampler().groups_for(&job, monotonic_ns()).into_iter().next()
    }

    fn number(
        &self,
        job: u32,
        field: tracer_ebpf::handle::Handle<tracer_ebpf::handle::Number>,
    ) -> Option<u64> {
        self.group(job)?.number(field)
    }

    /// Files of the driver's that this process has open.
    fn driver_files(&self) -> usize {
        let files = std::fs::read_dir("/proc/self/fd").expect("/proc is there").flatten();
        let is_drivers = |file: &std::fs::DirEntry| {
            std::fs::read_link(file.path()).is_ok_and(|to| {
                let library = self.library.as_deref().and_then(|library| library.parent());
                to.starts_with("/dev") && to.to_string_lossy().contains("nvidia")
                    || library.is_some_and(|folder| to.starts_with(folder))
            })
        };
        files.filter(is_drivers).count()
    }
}

/// Mean of a share, in percent.
fn percent(group: &Group) -> f64 {
    group.hist(Gpu::utilization_ratio).and_then(|hist| hist.mean()).unwrap_or(f64::NAN) / 1e4
}

fn utilisation(check: &mut Check, seconds: u64) {
    for period_ms in [300, 970, 1000, 5000] {
        let running = check.spin(seconds, period_ms, 50, 16);
        let job = running.job();
        running.finish();
        let found = check.group(job).map_or(f64::NAN, |group| percent(&group));
        let what = format!("busy for half of each {period_ms} ms");
        check.say(
            &what,
            format!("{found:.1} %"),
            "50 %, within 5 points",
            (found - 50.0).abs() <= 5.0,
        );
    }
}

fn memory_and_energy(check: &mut Check, seconds: u64) {
    let running = check.spin(seconds, 100, 80, HELD_MIB);
    let job = running.job();
    running.finish();
    let Some(group) = check.group(job) else {
        return check.say("the workload", "not seen".into(), "on the GPU", false);
    };
    let mib = group.number(Gpu::memory_peak_bytes).unwrap_or(0) >> 20;
    let expected = format!("from {HELD_MIB} to {} MiB", HELD_MIB + CONTEXT_MIB);
    let is_so = (HELD_MIB..=HELD_MIB + CONTEXT_MIB).contains(&mib);
    check.say("memory", format!("{mib} MiB"), &expected, is_so);
    let shared = group.number(Gpu::readings_shared).unwrap_or(0);
    check.say("readings with others on the GPU", shared.to_string(), "none", shared == 0);
    let joules = group.number(Gpu::energy_joules).unwrap_or(0) as f64 / 1e3;
    let watts = group.hist(Gpu::power_watts).and_then(|hist| hist.mean()).unwrap_or(f64::NAN) / 1e3;
    let held_s = group.number(Gpu::held_ns).unwrap_or(0) as f64 / 1e9;
    let (found, expected) = (joules, watts * held_s);
    let is_so = (found / expected - 1.0).abs() <= 0.1;
    let expected = format!("{expected:.0} J by power and time, within 10 %");
    check.say("energy", format!("{found:.0} J"), &expected, is_so);
}

fn two_jobs(check: &mut Check, seconds: u64) {
    let both = [check.spin(seconds, 100, 30, 16), check.spin(seconds, 100, 30, 16)];
    let jobs = [both[0].job(), both[1].job()];
    both.into_iter().for_each(Running::finish);
    let groups = jobs.map(|job| check.group(job));
    let shared = groups.iter().flatten().all(|of| of.number(Gpu::readings_shared) > Some(0));
    check.say(
        "two jobs on the GPU",
        format!("{shared}"),
        "both are told that it is shared",
        shared,
    );
    let sum: f64 = groups.iter().flatten().map(percent).sum();
    let is_so = (20.0..=100.0).contains(&sum);
    check.say("what they kept busy together", format!("{sum:.0} %"), "from 20 to 100 %", is_so);
}

fn killed(check: &mut Check) {
    let failures = check.sampler().cost().failures;
    let all: Vec<Running> = (0..20).map(|_| check.spin(600, 100, 10, 16)).collect();
    let jobs: Vec<u32> = all.iter().map(Running::job).collect();
    sleep(SETTLED * 2);
    let seen = jobs.iter().filter(|job| check.number(**job, Gpu::processes) == Some(1)).count();
    check.say("contexts at once", seen.to_string(), "20", seen == 20);
    all.into_iter().for_each(Running::kill);
    sleep(SETTLED * 2);
    let left = jobs.iter().filter(|job| check.number(**job, Gpu::processes).is_some()).count();
    check.say("of those, after they were killed", left.to_string(), "none", left == 0);
    let lost = check.sampler().cost().failures - failures;
    check.say("devices lost with them", lost.to_string(), "none", lost == 0);
}

fn crashed(check: &mut Check) {
    let running = check.run(&["crash"]);
    let job = running.job();
    // Too short-lived to be seen by itself: another process of the job is there before and after.
    let beside = check.spin(10, 100, 10, 16);
    check.jobs.lock().expect("nobody panicked").insert(beside.job(), job);
    running.finish();
    beside.finish();
    let first = check.number(job, Gpu::xid_first);
    let errors = check.number(job, Gpu::xid_errors);
    let is_so = errors.is_none() || matches!(first, Some(13 | 31));
    let found = format!("{first:?} of {errors:?}");
    check.say("first XID of a crash", found, "13 or 31; none where events are not allowed", is_so);
}

fn reloads(check: &mut Check) {
    let before = check.driver_files();
    for _ in 0..5 {
        let ending = check.sampler.take().map(Sampler::end);
        check.sampler = Some(check.start(ending));
        sleep(SETTLED);
    }
    let after = check.driver_files();
    let expected = format!("{before} as before, and some");
    check.say(
        "files of the driver after five reloads",
        after.to_string(),
        &expected,
        after == before && after > 0,
    );
    drop(check.sampler.take());
    sleep(SETTLED);
    let left = check.driver_files();
    check.say("files of the driver when sampling has ended", left.to_string(), "none", left == 0);
}

fn main() -> ExitCode {
    let mut words = env::args().skip(1);
    let work = words.next().expect("the program that does the work");
    let library = words.next().map(PathBuf::from);
    let seconds = env::var("GPU_CHECK_SECONDS").ok().and_then(|text| text.parse().ok());
    let seconds: u64 = seconds.unwrap_or(SECONDS);
    let mut check = Check { work, library, jobs: Jobs::default(), sampler: None, wrong: 0 };
    check.sampler = Some(check.start(None));
    let begin = Instant::now();
    utilisation(&mut check, seconds);
    memory_and_energy(&mut check, seconds);
    two_jobs(&mut check, seconds);
    killed(&mut check);
    crashed(&mut check);
    let cost = check.sampler().cost();
    let percent = cost.cpu_ns as f64 / begin.elapsed().as_nanos() as f64 * 100.0;
    check.say(
        "CPU time of sampling",
        format!("{percent:.3} % of a core"),
        "below 0.5 %",
        percent < 0.5,
    );
    let notes = check.sampler().notes();
    check.say(
        "said",
        format!("{notes:?}"),
        "nothing of a lost device",
        !format!("{notes:?}").contains("unavailable"),
    );
    reloads(&mut check);
    println!("{} wrong", check.wrong);
    ExitCode::from(u8::from(check.wrong > 0))
}
