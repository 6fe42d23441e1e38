//! Jobs that wait for a slot while slots are free: all have one at once, whatever they do meanwhile.

use std::{collections::BTreeSet, ops::Range, process::Command, time::Instant};

use jobtrace::base::open_files::{Needs, SlotNeeds};
use jobtrace_tests::{
    agent::{Agent, Points},
    traced::program,
};

use super::{
    MOMENT,
    life::quiet,
    shaped::{Directories, Running, Shaped},
};

const TEST_JOB: &str = env!("CARGO_BIN_EXE_test_job");

/// What the agent has by itself.
const DEFAULTS: &str = "slots = 256\nspare_slots = 64";

/// Jobs that execute nothing: each has a process that was there before and sleeps a little now and then.
struct Crowd {
    jobs: Range<u32>,
    _running: Vec<Running>,
}

impl Crowd {
    fn start(shaped: &Shaped, jobs: Range<u32>) -> Self {
        let running = jobs.clone().map(|job| sleeper(&shaped.job(0, job, ""))).collect();
        Self { jobs, _running: running }
    }

    /// Those of its jobs that were on a CPU in the intervals of `points`.
    fn counted(&self, points: &Points) -> BTreeSet<u32> {
        let sched = points.only(|point| point.measurement == "job_sched");
        let numbers = sched.jobs().into_iter().filter_map(|job| job.parse().ok());
        numbers.filter(|job| self.jobs.contains(job)).collect()
    }
}

pub fn sleeper(directories: &Directories) -> Running {
    let mut command = directories.command(TEST_JOB);
    Running(command.args(["naps"]).spawn().unwrap())
}

/// What was written first: of one interval, or of several where these were too short for every task to have run.
fn first_intervals(points: &Points) -> Points {
    let own = points.0.iter().filter(|point| point.measurement == "jobtrace_self");
    let mut spans: Vec<_> =
        own.map(|point| (point.time_ns, point.number("interval_ns").unwrap())).collect();
    spans.sort_unstable();
    let mut so_far = 0;
    let last = spans.iter().find(|(_, span)| {
        so_far += span;
        so_far >= 500_000_000
    });
    let (last, _) = *last.expect("half a second");
    points.only(|point| point.time_ns <= last)
}

#[test]
fn sixty_jobs_that_were_there_before_are_counted_from_the_first_interval_on() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let crowd = Crowd::start(&shaped, 9_700..9_760);
    let begin = Instant::now();
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}\n{DEFAULTS}")).unwrap();
    eprintln!("the agent started beside 60 jobs in {:?}", begin.elapsed());
    agent.settle().unwrap();
    let points = agent.stop().unwrap();
    assert_eq!(crowd.counted(&first_intervals(&points)).len(), 60);
    assert_eq!(points.own("dropped_slot"), 0);
}

#[test]
fn a_burst_of_more_jobs_than_spare_slots_has_slots_in_a_moment() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    shaped.directory("slurm/uid_0");
    // Seldom enough that waiting for the ticks would take two minutes.
    let settings = format!("hierarchy = {hierarchy:?}\ninterval = \"10s\"\n{DEFAULTS}");
    let agent = Agent::start(&settings).unwrap();
    // However fast the agent is: while it makes no slot ready, the spare ones run out.
    agent.signal(libc::SIGSTOP);
    let crowd = Crowd::start(&shaped, 9_800..9_980);
    agent.signal(libc::SIGCONT);
    let begin = Instant::now();
    let counted = |points: &Points| (crowd.counted(points).len() == 180).then_some(());
    agent.wait_for("slots for 180 jobs", MOMENT, counted).unwrap();
    eprintln!("180 jobs had slots after {:?}", begin.elapsed());
    assert!(agent.points().unwrap().own("dropped_slot") > 0, "what came first was counted");
}

#[test]
fn more_jobs_than_slots_at_the_start_are_counted_and_said_once() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let crowd = Crowd::start(&shaped, 9_600..9_612);
    let agent =
        Agent::start(&format!("hierarchy = {hierarchy:?}\nslots = 8\nspare_slots = 2")).unwrap();
    agent.settle().unwrap();
    agent.settle().unwrap();
    let log = agent.log();
    let points = agent.stop().unwrap();
    assert_eq!(crowd.counted(&points).len(), 8, "none is spare while a job waits");
    assert_eq!(points.own("dropped_slot"), 4);
    assert_eq!(log.matches("all slots are in use: 4 jobs").count(), 1, "{log}");
}

/// With as few open files as the agent asks for, those of the jobs' cgroups that stay open take none that a slot, the
/// spool, a record or a client needs; with fewer it does not begin what it could not go on with.
#[test]
fn files_of_cgroups_that_stay_open_leave_enough_for_all_else() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let crowd = Crowd::start(&shaped, 9_520..9_580);
    let slots = Some(SlotNeeds { most: 64, banks: 1 });
    let cpus = aya::util::online_cpus().unwrap().len() as u64;
    let needed = Needs { io: true, software: false, slots }.files(cpus);
    let start = |limit: u64| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\"")]);
        shell.arg(program().unwrap());
        Agent::start_by(shell, &format!("hierarchy = {hierarchy:?}\nslots = 64\nspare_slots = 2"))
    };
    let refused = format!("{:#}", start(needed - 1).unwrap_err());
    assert!(refused.contains("set `slots` to 63 at most"), "{refused}");
    let agent = start(needed).unwrap();
    let counted = |points: &Points| (crowd.counted(points).len() == 60).then_some(());
    agent.wait_for("slots for 60 jobs", MOMENT, counted).unwrap();
    agent.settle().unwrap();
    let open = agent.descriptors() as u64;
    eprintln!("{open} of {needed} files are open");
    assert!(open + 50 <= needed, "{open} of {needed}");
    agent.recorded().unwrap();
    let log = agent.log();
    assert!(!log.contains("Too many open files"), "{log}");
    agent.stop().unwrap();
}
