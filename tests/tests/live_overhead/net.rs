//! The network's probes are shed by themselves, and what they missed stays missed.

use std::{fs, thread::sleep, time::Duration};

use jobtrace_tests::{agent::Point, agree::Agreement};

use super::{
    BURST,
    agent::{Agent, job, start_inside},
    flag, give_everything_back, is_told, own,
};

const MESSAGES: &str = env!("CARGO_BIN_EXE_messages");
const FIELDS: [&str; 4] = ["sent_bytes", "sent_calls", "received_bytes", "received_calls"];

/// Sum of a field of the job's messages of one family after `after_ns`.
fn messages(points: &[Point], family: &str, after_ns: i64, field: &str) -> u64 {
    let job = std::process::id().to_string();
    let is_meant = |point: &&Point| {
        point.measurement == "job_net"
            && point.tag("job") == job
            && point.tag("family") == family
            && point.time_ns > after_ns
    };
    points.iter().filter(is_meant).filter_map(|point| point.number(field)).sum()
}

#[test]
fn messages_are_unknown_while_the_network_is_shed_and_none_of_the_gap_comes_back() {
    let (_folder, stop) = flag();
    // Far below what the burst costs on a fifth of a CPU, and above a busy node's switches.
    let mut agent = Agent::start(&[], "max_ratio = 0.002, patience = 1, back_off = \"4s\"");
    let attachments = agent.attachments();
    let cgroup = job();
    // Unix sockets before and in the gap, TCP after it.
    let burst = start_inside(&cgroup, &[BURST, "socket", &stop, "0"]);
    agent.wait_for("net probes detached, unknown for now: job_net");
    assert!(agent.attachments() < attachments);
    sleep(Duration::from_millis(1500));
    fs::write(&stop, "").unwrap();
    let burst = burst.end();
    give_everything_back(&mut agent, "4s");
    assert_eq!(agent.attachments(), attachments, "nothing is attached twice, or not again");
    let after = start_inside(&cgroup, &[MESSAGES, "tcp", "calls", "300", "5000"]).end();
    drop(cgroup);
    let points = agent.end();

    let shed: Vec<_> = own(&points).filter(|point| point.float("shed_net") == Some(1.0)).collect();
    for point in &shed {
        for field in FIELDS.into_iter().chain(["connections", "retransmits"]) {
            assert!(!is_told(&points, point.time_ns, "job_net", field), "{field}");
        }
    }
    // Nobody else's values are lost with them.
    let alone = shed.iter().filter(|point| point.float("shed_families") == Some(1.0));
    let with_tasks =
        alone.filter(|point| is_told(&points, point.time_ns, "job_sched", "on_cpu_ns")).count();
    assert!(with_tasks >= 1, "{shed:?}");
    let last_ns = shed.iter().map(|point| point.time_ns).max().unwrap();
    eprintln!("{} turns, {} intervals shed", burst.fact("turns"), shed.len());
    let mut agree = Agreement::new();
    for field in FIELDS {
        let seen = messages(&points, "unix", 0, field);
        // It went on after the probes were gone.
        agree.between(&format!("unix {field} before the gap"), seen, 1..=burst.fact("turns") - 1);
        let late = messages(&points, "unix", last_ns, field);
        agree.exact(&format!("unix {field} of the gap that came later"), late, 0);
        let found = messages(&points, "tcp", last_ns, field);
        agree.exact(&format!("tcp {field} after the gap"), found, after.fact(field));
    }
    agree.exact("connections", messages(&points, "tcp", last_ns, "connections"), 1);
    agree.end();
}
