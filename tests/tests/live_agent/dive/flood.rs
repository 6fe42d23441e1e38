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
/// Far more than an answer takes, and less than the program waits for one.
const SOON: Duration = Duration::from_secs(5);

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
