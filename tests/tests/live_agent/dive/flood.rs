//! One who asks without end shuts nobody out.

use std::{
    io::Read,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use jobtrace_tests::{agent::Agent, rig::shaped::Shaped};

use super::{Desk, OWNER, Running, STRANGER};
use crate::life::quiet;

/// Asks by as many connections as it can have, of which it keeps 400; tells when it has them.
const FLOOD: &str = "
import socket, sys
held = []
while True:
    try:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(1)
        client.connect(sys.argv[1])
        client.sendall(b'{\"ask\":\"io\",\"job\":\"9841\",\"for_ns\":60000000000}\\n')
        held.append(client)
    except OSError:
        continue
    if len(held) == 400:
        print('full', flush=True)
    if len(held) > 400:
        held.pop(0).close()
";
/// Comes and goes without end, and asks nothing.
const KNOCKING: &str = "
import socket, sys
print('full', flush=True)
while True:
    client = socket.socket(socket.AF_UNIX)
    client.connect(sys.argv[1])
    client.close()
";
/// Of a core, in hundredths: without a pace it is all of one.
const KNOCKING_MOST: u64 = 15;
/// Far more than an answer takes, and less than the program waits for one.
const SOON: Duration = Duration::from_secs(5);

/// CPU time that process `pid` has taken, in hundredths of a second.
fn cpu_ticks(pid: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

#[test]
fn who_connects_without_end_costs_little_and_shuts_nobody_out() {
    let (hierarchy, _) = quiet();
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let desk = Desk::of(&agent);
    agent.settle().unwrap();
    let mut knocking = Command::new("python3");
    let knocking =
        knocking.args(["-c", KNOCKING]).arg(&desk.socket).uid(STRANGER).stdout(Stdio::piped());
    let mut knocking = Running(knocking.spawn().unwrap());
    knocking.0.stdout.as_mut().unwrap().read_exact(&mut [0; 5]).unwrap();
    let (begin, before) = (Instant::now(), cpu_ticks(agent.pid()));
    for _ in 0..4 {
        let asked = Instant::now();
        let mut top = Command::new(&desk.program);
        let top = top.args(["top", "--once", "--socket"]).arg(&desk.socket).output().unwrap();
        assert!(top.status.success() && asked.elapsed() < SOON, "{:?}: {top:?}", asked.elapsed());
        std::thread::sleep(Duration::from_secs(1));
    }
    let (took, ticks) = (begin.elapsed(), cpu_ticks(agent.pid()) - before);
    let most = took.as_millis() as u64 / 10 * KNOCKING_MOST / 100;
    assert!(ticks <= most, "{ticks} hundredths of a second in {took:?}, {most} allowed");
    drop(knocking);
    agent.stop().unwrap();
}

#[test]
fn a_flood_of_questions_shuts_nobody_out() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let desk = Desk::of(&agent);
    let job = shaped.job(OWNER, 9_841, "step_0");
    let _sleeper = Running(job.command("sleep").arg("600").spawn().unwrap());
    agent.settle().unwrap();
    let mut flood = Command::new("python3");
    let flood = flood.args(["-c", FLOOD]).arg(&desk.socket).uid(STRANGER).stdout(Stdio::piped());
    let mut flood = Running(flood.spawn().unwrap());
    flood.0.stdout.as_mut().unwrap().read_exact(&mut [0; 5]).unwrap();
    for _ in 0..3 {
        let begin = Instant::now();
        let mut top = Command::new(&desk.program);
        let top = top.args(["top", "--once", "--socket"]).arg(&desk.socket).output().unwrap();
        let text = String::from_utf8_lossy(&top.stdout).into_owned();
        let took = begin.elapsed();
        assert!(top.status.success() && text.contains("9841"), "{took:?}: {top:?}");
        assert!(took < SOON, "an answer took {took:?}");
    }
    drop(flood);
    agent.stop().unwrap();
}
