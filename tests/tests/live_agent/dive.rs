//! `jobtrace io` beside a real agent: what is counted of a job that runs, for whom, until when; and that nothing of it
//! stays.

use std::{
    fs::{self, Permissions},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use jobtrace_tests::{
    account::Report,
    agent::Agent,
    agree::Agreement,
    daemon::kernel::Held,
    operations,
    rig::{self, mount::Tmpfs, wait_for},
    traced::program,
};
use serde_json::Value;
use tracer_ebpf::tables::io_slow::SLOWEST;

use super::{
    life::quiet,
    shaped::{Running, Shaped},
};

mod flood;
mod mounts;
mod quota;

const FILE_OPS: &str = env!("CARGO_BIN_EXE_file_ops");
const OWNER: u32 = 61_001;
const STRANGER: u32 = 61_002;
/// For what comes within a second or two on a machine with nothing else to do.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the agent says when it begins.
const BEGUN: &str = "counting the file operations of job";

/// Where any user can ask the agent, with a copy of the program.
struct Desk {
    _folder: tempfile::TempDir,
    program: PathBuf,
    socket: PathBuf,
}

impl Desk {
    fn of(agent: &Agent) -> Self {
        let folder = rig::folder("desk").unwrap();
        let open = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        open(folder.path());
        agent.socket().ancestors().skip(1).take(2).for_each(open);
        let own = folder.path().join("jobtrace");
        fs::copy(program().unwrap(), &own).unwrap();
        Self { _folder: folder, program: own, socket: agent.socket() }
    }

    /// `uid` asks: `io` with these arguments.
    fn ask(&self, uid: u32, arguments: &[&str]) -> Running {
        let mut command = Command::new(&self.program);
        command.arg("io").args(arguments).arg("--socket").arg(&self.socket).uid(uid).gid(uid);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(command.spawn().unwrap())
    }

    /// What is said to `uid`, who is refused.
    fn refused(&self, uid: u32, arguments: &[&str]) -> String {
        let [status, stdout, stderr] = end(self.ask(uid, arguments));
        assert_eq!((&*status, &*stdout), ("2", ""), "{stderr}");
        stderr
    }
}

/// Status and both outputs of one that ends by itself.
fn end(mut asked: Running) -> [String; 3] {
    let (stdout, stderr) = (asked.0.stdout.take().unwrap(), asked.0.stderr.take().unwrap());
    let read = |mut from: Box<dyn std::io::Read + Send>| {
        std::thread::spawn(move || {
            let mut text = String::new();
            from.read_to_string(&mut text).map(|_| text).unwrap()
        })
    };
    let (stdout, stderr) = (read(Box::new(stdout)), read(Box::new(stderr)));
    let status = wait_for("its end", PATIENCE, || asked.0.try_wait().ok().flatten()).unwrap();
    let status = status.code().map_or_else(|| status.to_string(), |code| code.to_string());
    [status, stdout.join().unwrap(), stderr.join().unwrap()]
}

/// What is told in the end to one who asked for JSON: what `report` says that was done on `disk`.
fn counted(asked: Running, disk: &Tmpfs, report: &Report, agent: &Agent) -> String {
    let [status, json, stderr] = end(asked);
    assert_eq!((&*status, &*stderr), ("0", ""), "{}", agent.log());
    let told: Value = serde_json::from_str(&json).unwrap();
    let mut agree = Agreement::new();
    operations::agree(&mut agree, &told, ["tmpfs", disk.path().to_str().unwrap()], report);
    agree.exact("slowest", told["io_slowest"].as_array().unwrap().len() as u64, SLOWEST as u64);
    let threads = told["io_threads"].as_array().unwrap().iter();
    let largest = threads.filter_map(|thread| thread["ops"].as_u64()).max().unwrap();
    agree.between("operations of the main thread", largest, 1_000..=40_000);
    agree.end();
    json
}

/// Waits until the agent has begun to count for the `times`th time.
fn begun(agent: &Agent, times: usize) {
    let has = || (agent.log().matches(BEGUN).count() >= times).then_some(());
    wait_for("counting", PATIENCE, has)
        .unwrap_or_else(|error| panic!("{error:#}: {}", agent.log()));
}

#[test]
fn what_a_running_job_does_is_counted_exactly_until_it_ends() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let disk = Tmpfs::mount(64 << 20).unwrap();
    let folder = |name: &str| {
        let folder = disk.path().join(name);
        fs::create_dir(&folder).unwrap();
        folder.to_str().unwrap().to_owned()
    };
    let [before, own, beside] = ["before", "own", "beside"].map(folder);
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let desk = Desk::of(&agent);
    let [job, other] = [9_801, 9_802].map(|job| shaped.job(OWNER, job, "step_0"));
    let sleeper = Running(job.command("sleep").arg("600").spawn().unwrap());
    // Not told of: nobody counted.
    job.run(&[FILE_OPS, &before, "1"]);
    agent.settle().unwrap();
    let asked = desk.ask(OWNER, &["9801", "--for", "1h", "--json"]);
    begun(&agent, 1);
    agent.signal(libc::SIGHUP);
    let reloaded = || agent.log().contains("configuration reloaded").then_some(());
    wait_for("the configuration", PATIENCE, reloaded).unwrap();
    let mut sibling = other.command(FILE_OPS);
    let sibling = sibling.args([&beside, "1"]).stdout(Stdio::null()).spawn().unwrap();
    let mut sibling = Running(sibling);
    // A cgroup that was not there when it began.
    let report = shaped.job(OWNER, 9_801, "step_1").run(&[FILE_OPS, &own, "1"]);
    let report: Report = serde_json::from_str(&report).unwrap();
    assert!(sibling.0.wait().unwrap().success());
    drop(sleeper);
    [9_801, 9_802].into_iter().for_each(|job| shaped.remove_job(OWNER, job));
    let json = counted(asked, &disk, &report, &agent);
    let told: Value = serde_json::from_str(&json).unwrap();
    let number = |key: &str| told["job"][key].as_u64().unwrap_or_else(|| panic!("{key} in {told}"));
    assert!(number("start") < number("counted_from") && number("counted_from") < number("end"));
    assert_eq!(number("uid"), u64::from(OWNER));
    let unknown: Vec<_> =
        told["unknown"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for key in ["block", "memory", "wait", "cpus_used"] {
        assert!(unknown.contains(&key), "{key} was not looked at: {unknown:?}");
    }
    let elapsed_ns = told["elapsed_ns"].as_u64().unwrap();
    // By clocks of which one may be set meanwhile.
    assert!(elapsed_ns.abs_diff(number("end") - number("counted_from")) < 100_000_000, "{told}");
    assert!(told["sched"]["on_cpu_ns"].as_u64() > Some(0), "{told}");
    assert!(agent.log().contains("for user 61001: the job ended"), "{}", agent.log());
    // The record is one that a report is made of.
    let file = desk.socket.with_file_name("9801.json");
    fs::write(&file, json).unwrap();
    let output = Command::new(&desk.program).arg("report").arg(&file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("I/O by mount and operation"), "{text}");
    agent.stop().unwrap();
}

#[test]
fn one_is_served_at_a_time_and_nothing_stays_when_he_is_gone() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let desk = Desk::of(&agent);
    let job = shaped.job(OWNER, 9_803, "step_0");
    let _sleeper = Running(job.command("sleep").arg("600").spawn().unwrap());
    let known = || desk.refused(STRANGER, &["9803"]).contains("no job 9803 of yours").then_some(());
    wait_for("a stranger's refusal", PATIENCE, known).unwrap();
    assert!(desk.refused(0, &["9804"]).contains("no job 9804 runs on this node: `jobtrace top"));
    // Its slots, each with descriptors of its own, are ready at some time.
    let mut before = Held::default();
    let is_ready = || {
        let earlier = std::mem::replace(&mut before, Held::by(agent.pid()).unwrap());
        agent.settle().unwrap();
        (earlier == before).then_some(())
    };
    wait_for("its slots", PATIENCE, is_ready).unwrap();
    let descriptors = agent.descriptors();
    // Root need not wait for the rest after each.
    for (round, uid, who) in [(1, OWNER, "user 61001"), (2, 0, "root"), (3, 0, "root")] {
        let mut asked = desk.ask(uid, &["9803", "--for", &format!("{round}m")]);
        begun(&agent, round);
        let refused = desk.refused(OWNER, &["9803"]);
        let who = format!("one job at a time, and does so for {who}, for ");
        assert!(refused.contains(&who), "{refused}");
        let mut loaded = Held::by(agent.pid()).unwrap();
        loaded.programs.retain(|id| !before.programs.contains(id));
        loaded.maps.retain(|id| !before.maps.contains(id));
        loaded.links.retain(|id| !before.links.contains(id));
        // Those without which it is not begun, and four that a kernel may lack.
        assert!((5..=9).contains(&loaded.programs.len()), "round {round}: {loaded:?}");
        assert!(loaded.maps.len() > 10 && loaded.left() == loaded, "{loaded:?}");
        asked.0.kill().unwrap();
        asked.0.wait().unwrap();
        let rests = "the agent rests between two countings of file operations: try again in ";
        let is_resting = || desk.refused(OWNER, &["9803"]).contains(rests).then_some(());
        wait_for("its rest", PATIENCE, is_resting).unwrap();
        assert_eq!(loaded.left_in_the_end(), Held::default(), "round {round}");
        assert_eq!(Held::by(agent.pid()).unwrap(), before, "round {round}");
        let is_as_before = || (agent.descriptors() <= descriptors).then_some(());
        wait_for("its descriptors", PATIENCE, is_as_before).unwrap();
    }
    assert!(agent.log().contains("for user 61001: its caller ended it"), "{}", agent.log());
    // Where the site leaves it to root.
    agent.reload(&format!("hierarchy = {hierarchy:?}\njobs.io_by_owner = false")).unwrap();
    let reloaded = || agent.log().contains("configuration reloaded").then_some(());
    wait_for("the configuration", PATIENCE, reloaded).unwrap();
    let refused = desk.refused(OWNER, &["9803"]);
    assert!(
        refused.contains("only root may have file operations counted on this node"),
        "{refused}"
    );
    // One whose time is over.
    let [status, text, stderr] = end(desk.ask(0, &["9803", "--for", "1s"]));
    assert_eq!((&*status, &*stderr), ("0", ""), "{}", agent.log());
    assert!(text.starts_with("9803 of 61001\n  file operations counted for 1."), "{text}");
    assert!(text.contains(" of a job that has run for ") && text.contains("In short"), "{text}");
    assert!(agent.log().contains("for root: the time is over"), "{}", agent.log());
    // Of another one that is told of in the same words the log has its line.
    let [status, _, stderr] = end(desk.ask(0, &["9803", "--for", "1s"]));
    assert_eq!((&*status, &*stderr), ("0", ""), "{}", agent.log());
    let ends = || (agent.log().matches("for root: the time is over").count() == 2).then_some(());
    wait_for("its line", Duration::from_secs(5), ends)
        .unwrap_or_else(|error| panic!("{error:#}: {}", agent.log()));
    agent.stop().unwrap();
}

/// Whose mounts are its own is not known before.
#[test]
fn a_job_whose_first_process_comes_later_is_told_with_its_mounts() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let disk = Tmpfs::mount(64 << 20).unwrap();
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let desk = Desk::of(&agent);
    let job = shaped.job(OWNER, 9_812, "step_0");
    agent.settle().unwrap();
    let asked = desk.ask(0, &["9812", "--for", "1h", "--json"]);
    begun(&agent, 1);
    let report = job.run(&[FILE_OPS, disk.path().to_str().unwrap(), "1"]);
    let report: Report = serde_json::from_str(&report).unwrap();
    shaped.remove_job(OWNER, 9_812);
    let told: Value = serde_json::from_str(&counted(asked, &disk, &report, &agent)).unwrap();
    let files = told["io_files"].as_array().unwrap();
    let paths: Vec<_> = files.iter().filter_map(|file| file["path"].as_str()).collect();
    let mount = disk.path().to_str().unwrap();
    assert!(paths.iter().any(|path| path.starts_with(mount)), "{mount} in {paths:?}");
    agent.stop().unwrap();
}

/// It goes on while it is read for the last time.
#[test]
fn files_and_totals_of_a_busy_job_tell_of_the_same_operations() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let disk = Tmpfs::mount(64 << 20).unwrap();
    let mount = disk.path().to_str().unwrap();
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let desk = Desk::of(&agent);
    let job = shaped.job(OWNER, 9_811, "step_0");
    fs::write(disk.path().join("read"), vec![b'x'; 1 << 20]).unwrap();
    let reads = format!("while :; do dd if={mount}/read of=/dev/null bs=512 2> /dev/null; done");
    let _reader = Running(job.command("sh").args(["-c", &reads]).spawn().unwrap());
    agent.settle().unwrap();
    let [status, json, stderr] = end(desk.ask(0, &["9811", "--for", "1s", "--json"]));
    assert_eq!((&*status, &*stderr), ("0", ""), "{}", agent.log());
    let told: Value = serde_json::from_str(&json).unwrap();
    let ops = |key: &str| -> u64 {
        let rows = told[key].as_array().unwrap().iter().filter(|row| row["mount"] == mount);
        rows.filter_map(|row| row["ops"].as_u64()).sum()
    };
    assert!(ops("io") > 10_000, "{} operations", ops("io"));
    assert_eq!(ops("io"), ops("io_files"), "in totals, and in files");
    assert!(told["io_lost"].is_null(), "{}", told["io_lost"]);
    agent.stop().unwrap();
}

#[test]
fn who_counts_when_the_agent_is_stopped_is_told_what_was_counted() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let disk = Tmpfs::mount(64 << 20).unwrap();
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let desk = Desk::of(&agent);
    let job = shaped.job(OWNER, 9_805, "step_0");
    let _sleeper = Running(job.command("sleep").arg("600").spawn().unwrap());
    agent.settle().unwrap();
    let asked = desk.ask(OWNER, &["9805", "--for", "1h", "--json"]);
    begun(&agent, 1);
    let report = job.run(&[FILE_OPS, disk.path().to_str().unwrap(), "1"]);
    let held = Held::by(agent.pid()).unwrap();
    let begin = Instant::now();
    agent.stop().unwrap();
    eprintln!("the agent has ended after {:?}", begin.elapsed());
    let [status, json, stderr] = end(asked);
    assert_eq!((&*status, &*stderr), ("0", ""));
    let told: Value = serde_json::from_str(&json).unwrap();
    let mut agree = Agreement::new();
    let report: Report = serde_json::from_str(&report).unwrap();
    operations::agree(&mut agree, &told, ["tmpfs", disk.path().to_str().unwrap()], &report);
    agree.end();
    let notes = told["notes"].to_string();
    assert!(notes.contains("counting ended before its time: the agent was stopped"), "{notes}");
    assert_eq!(held.left_in_the_end(), Held::default());
}

#[test]
fn root_takes_it_from_another_user_who_is_told_what_was_counted() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let disk = Tmpfs::mount(64 << 20).unwrap();
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let desk = Desk::of(&agent);
    let job = shaped.job(OWNER, 9_805, "step_0");
    let _sleeper = Running(job.command("sleep").arg("600").spawn().unwrap());
    // So that the agent knows whose it is.
    agent.settle().unwrap();
    let asked = desk.ask(OWNER, &["9805", "--for", "1h", "--json"]);
    begun(&agent, 1);
    let report = job.run(&[FILE_OPS, disk.path().to_str().unwrap(), "1"]);
    let report: Report = serde_json::from_str(&report).unwrap();
    let [status, text, stderr] = end(desk.ask(0, &["9805", "--for", "1s"]));
    assert_eq!((&*status, &*stderr), ("0", ""), "{text}");
    let json = counted(asked, &disk, &report, &agent);
    let told: Value = serde_json::from_str(&json).unwrap();
    let note = "counting ended before its time: root has file operations counted, of this job or another one";
    assert!(told["notes"].as_array().unwrap().iter().any(|said| said == note), "{told}");
    assert!(agent.log().contains("for user 61001: root wants to count"), "{}", agent.log());
    agent.stop().unwrap();
}
