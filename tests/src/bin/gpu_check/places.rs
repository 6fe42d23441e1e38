//! Where sampling runs: as the unit's user, in and beside namespaces, in jobtrace itself, and its end.

use std::{
    env, fs,
    process::{self, Command},
};

use jobtrace_tests::agent::Agent;
use serde_json::Value;

use crate::{
    check::{Check, Running, SEVERAL, Work},
    truth::{driver_files, files},
};

/// The unit, whose user and capabilities are meant.
const UNIT: &str = include_str!("../../../../xtask/dist/jobtrace.service");
/// A user that every system has, where the unit's is not there.
const NOBODY: &str = "65534";
const RELOADS: usize = 5;
/// Of this process, with the words that follow: only whether a job is seen.
pub const SEEN: &str = "seen";
/// In place of a job: one that is started there.
pub const OWN: &str = "own";
/// With its own /proc, as containers have it: CUDA does not begin where /proc shows other processes (error 304).
const NAMESPACE: [&str; 5] = ["unshare", "--fork", "--pid", "--kill-child", "--mount-proc"];

/// Both of what follows, which take root.
pub fn elsewhere(check: &mut Check) {
    // SAFETY: no pointers.
    if unsafe { libc::geteuid() } != 0 {
        return check.left_out("the unit's user, PID namespaces", "not root");
    }
    as_unit_user(check);
    in_namespace(check);
}

/// With another process's privileges a job is seen as well.
fn as_unit_user(check: &mut Check) {
    let value = |key: &str| UNIT.lines().find_map(|line| line.strip_prefix(key)).expect(key);
    let unit_user = value("User=");
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let has = users.lines().any(|line| line.starts_with(&format!("{unit_user}:")));
    let user = if has { unit_user } else { NOBODY };
    let of =
        |capability: &str| format!(",+{}", capability.trim_start_matches("CAP_").to_lowercase());
    let capabilities: String = value("AmbientCapabilities=").split(' ').map(of).collect();
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={user}")).args(["--regid=65534", "--clear-groups"]);
    for set in ["bounding-set", "inh-caps", "ambient-caps"] {
        command.arg(format!("--{set}=-all{capabilities}"));
    }
    command.arg("--no-new-privs");
    let running = check.spin(600, Work::HALF);
    seen_by(check, "as the unit's user", command, &running.job().to_string());
    running.kill();
}

/// A job in a PID namespace is seen from outside of it, and within one by whoever is there too.
fn in_namespace(check: &mut Check) {
    let running = check.spin_by(&NAMESPACE, 600, Work::HALF);
    check.seen_rows("a job in a PID namespace", running.job());
    running.kill();
    let mut command = Command::new(NAMESPACE[0]);
    command.args(&NAMESPACE[1..]);
    seen_by(check, "both in a PID namespace", command, OWN);
}

/// Has this program run by `command`, to look for a job.
fn seen_by(check: &mut Check, place: &str, mut command: Command, job: &str) {
    let own = env::current_exe().expect("this program's file");
    command.arg(own).arg(&check.folder).args([SEEN, place, job]);
    match command.status() {
        Ok(status) => check.add(status),
        Err(error) => check.left_out(place, &error.to_string()),
    }
}

/// What [`seen_by`] runs.
pub fn seen(check: &mut Check, place: &str, job: &str) {
    check.sample();
    let own = (job == OWN).then(|| check.spin(15, Work::HALF));
    let job = own.as_ref().map_or_else(|| job.parse().expect("a job"), |own| own.job());
    if own.is_some() && !check.is_seen(job) {
        check.left_out(place, "the driver tells the numbers of another namespace");
    } else {
        check.seen_rows(place, job);
    }
    own.into_iter().for_each(Running::finish);
}

/// The driver is initialised once, however often sampling begins anew, and let go of at its end.
pub fn restarts(check: &mut Check) {
    let before = check.settled(|| driver_files(process::id()));
    for _ in 0..RELOADS {
        check.sample();
        check.comes(|| check.sampler().cost().readings >= SEVERAL);
    }
    let found = check.settled(|| driver_files(process::id())) as f64;
    check.row("files of the driver after five restarts", Some(found), "", 1.0..=before as f64);
    check.stop_sampling();
    check.comes(|| driver_files(process::id()) == 0);
    let left = driver_files(process::id()) as f64;
    check.row("files of the driver when sampling has ended", Some(left), "", 0.0..=0.0);
}

/// The same of the agent, by SIGHUP; and what `jobtrace run` says of its command.
pub fn in_jobtrace(check: &mut Check) {
    let jobtrace = check.folder.join("jobtrace");
    let json = tempfile::NamedTempFile::new().expect("a file for what it says");
    let before = [jobtrace.to_str().expect("a path that can be read"), "run", "--quiet", "--json"];
    let before = [&before[..], &[json.path().to_str().expect("another"), "--"]].concat();
    // It samples once a second, however fast the rest is.
    check.spin_by(&before, 5 * check.faster, Work { period_ms: 970, ..Work::HALF }).finish();
    let Ok(told) = serde_json::from_reader::<_, Value>(json.as_file()) else {
        let why = "its probes cannot be loaded here; jobtrace doctor says why";
        return check.left_out("jobtrace run and jobtrace agent", why);
    };
    let gpu = &told["gpu"][0];
    check.memory_row("jobtrace run: memory", gpu["memory_peak_bytes"].as_u64());
    let shared = gpu["readings_shared"].as_f64();
    check.row("jobtrace run: readings with others on the GPU", shared, "", 0.0..=0.0);
    agent(check, Command::new(jobtrace));
}

fn agent(check: &mut Check, command: Command) {
    let agent = match Agent::start_by(command, "slots = 64\nspare_slots = 8") {
        Ok(agent) => agent,
        Err(error) => return check.left_out("jobtrace agent", &format!("{error:#}")),
    };
    let pid = agent.pid() as u32;
    let settings = |gpu: &str| format!("slots = 64\nspare_slots = 8\n{gpu}");
    let drivers = check.settled(|| driver_files(pid));
    // What it keeps open, it has opened at its first interval's end.
    if let Err(error) = agent.settle() {
        return check.left_out("jobtrace agent", &format!("{error:#}"));
    }
    let files = files(pid);
    for period in ["900ms", "800ms", "900ms", "800ms", "900ms"] {
        let before = agent.sampler_thread();
        let sent = agent.reload(&settings(&format!("gpu.period = \"{period}\"")));
        sent.expect("its configuration can be written");
        check.comes(|| agent.sampler_thread().is_some_and(|now| Some(now) != before));
    }
    let of_driver = check.settled(|| driver_files(pid)) as f64;
    check.comes(|| self::files(pid).len() <= files.len());
    let found = self::files(pid);
    let (number, most) = (found.len() as f64, files.len() as f64);
    check.row("files of the agent after SIGHUP five times", Some(number), "", 0.0..=most);
    if found.len() > files.len() {
        println!("      at first {files:?}, then {found:?}");
    }
    check.row("files of the driver after it", Some(of_driver), "", 1.0..=drivers as f64);
    agent.reload(&settings("gpu.sample = false")).expect("its configuration can be written");
    check.comes(|| driver_files(pid) == 0);
    let left = driver_files(pid) as f64;
    check.row("files of the driver with gpu.sample = false", Some(left), "", 0.0..=0.0);
    if let Err(error) = agent.stop() {
        check.left_out("the agent's end", &format!("{error:#}"));
    }
}
