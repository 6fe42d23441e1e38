//! Live ring: the network against what both ends counted, exactly, beside a sibling that does the same.

use std::path::Path;

use jobtrace::{cgroup::hierarchies::Hierarchies, model::tables::NET};
use jobtrace_tests::{
    agent::{Agent, Point},
    agree::Agreement,
    own_cgroup::OwnCgroup,
    rig::{shaped::Shaped, workload},
    sibling::Sibling,
    traced::Traced,
};
use tracer_ebpf::tables::net::FAMILIES;

const MESSAGES: &str = env!("CARGO_BIN_EXE_messages");
const COUNT: u64 = 300;
const BYTES: u64 = 5000;
const FIELDS: [&str; 4] = ["sent_bytes", "sent_calls", "received_bytes", "received_calls"];

/// Messages of `sockets` by `way`, which jobtrace files under `family`: `known` fields are those of the
/// workload, all others are zero.
fn exact(sockets: &str, way: &str, family: &str, known: &[&str]) {
    let (count, bytes) = (COUNT.to_string(), BYTES.to_string());
    let command = [MESSAGES, sockets, way, &count, &bytes];
    let sibling = Sibling::start(&command);
    let (job, report) = Traced::report(&[], &command);
    sibling.end();
    let mut agree = Agreement::new();
    agree.exact(
        &format!("{sockets} {way}: sent_bytes, known"),
        report.fact("sent_bytes"),
        COUNT * BYTES,
    );
    for field in known {
        agree.exact(
            &format!("{sockets} {way}: {field}"),
            job.net(family, field),
            report.fact(field),
        );
    }
    for other in FAMILIES.into_iter().filter(|other| *other != family) {
        for field in FIELDS {
            agree.exact(&format!("{sockets} {way}: {other}, {field}"), job.net(other, field), 0);
        }
    }
    let connections = u64::from(sockets == "tcp");
    agree.exact("connections", job.net("tcp", "connections"), connections);
    agree.end();
}

#[test]
fn both_ends_of_each_family_are_exact() {
    for (sockets, family) in
        [("tcp", "tcp"), ("udp", "udp"), ("unix", "unix"), ("datagrams", "unix")]
    {
        exact(sockets, "calls", family, &FIELDS);
    }
}

#[test]
fn many_messages_in_one_call_are_each_counted() {
    exact("udp", "many", "udp", &FIELDS);
    exact("datagrams", "many", "unix", &FIELDS);
    exact("netlink", "many", "other", &FIELDS);
}

#[test]
fn what_is_sent_without_a_copy_is_exact() {
    let without_calls = ["sent_bytes", "received_bytes", "received_calls"];
    for (sockets, family) in [("tcp", "tcp"), ("unix", "unix")] {
        exact(sockets, "file", family, &without_calls);
        exact(sockets, "splice", family, &without_calls);
    }
    exact("tcp", "zerocopy", "tcp", &FIELDS);
}

#[test]
fn a_ring_is_as_good_as_calls() {
    for (sockets, family) in [("tcp", "tcp"), ("udp", "udp"), ("unix", "unix")] {
        exact(sockets, "ring", family, &FIELDS);
    }
}

/// By a program on a function's return, which not every kernel lets be attached.
#[test]
fn what_is_spliced_from_a_socket_is_exact_or_said_to_be_unknown() {
    let (count, bytes) = (COUNT.to_string(), BYTES.to_string());
    for (sockets, family) in [("tcp", "tcp"), ("unix", "unix")] {
        let command = [MESSAGES, sockets, "spliced", &count, &bytes];
        let (job, report) = Traced::report(&[], &command);
        let notes = job.json["notes"].as_array().map_or(&[][..], Vec::as_slice);
        let is_said = |note: &serde_json::Value| {
            note.as_str().is_some_and(|note| note.contains("sock_splice_read"))
        };
        let is_lost = notes.iter().any(is_said);
        let mut agree = Agreement::new();
        agree.exact("sent_bytes", job.net(family, "sent_bytes"), report.fact("sent_bytes"));
        for field in ["received_bytes", "received_calls"] {
            let truth = if is_lost { 0 } else { report.fact(field) };
            agree.exact(&format!("{sockets}, spliced: {field}"), job.net(family, field), truth);
        }
        agree.end();
    }
}

#[test]
fn a_job_that_only_receives_has_sent_nothing() {
    let outside = OwnCgroup::make("sender", &["blkio", "cpuacct"]);
    let procs = outside.procs();
    let (count, bytes) = (COUNT.to_string(), BYTES.to_string());
    for (sockets, family) in [("tcp", "tcp"), ("udp", "udp"), ("unix", "unix")] {
        let mut command = vec![MESSAGES, sockets, "calls", &count, &bytes];
        command.extend(procs.iter().map(|path| path.to_str().unwrap()));
        let (job, report) = Traced::report(&[], &command);
        let mut agree = Agreement::new();
        for field in ["received_bytes", "received_calls"] {
            let what = format!("{sockets}: {field}");
            agree.exact(&what, job.net(family, field), report.fact(field));
        }
        agree.exact(&format!("{sockets}: sent_bytes"), job.net(family, "sent_bytes"), 0);
        agree.exact(&format!("{sockets}: sent_calls"), job.net(family, "sent_calls"), 0);
        agree.end();
    }
}

#[test]
fn segments_sent_again_are_those_of_the_socket() {
    let sibling = Sibling::start(&[MESSAGES, "lost"]);
    let (job, report) = Traced::report(&[], &[MESSAGES, "lost"]);
    sibling.end();
    let mut agree = Agreement::new();
    agree.exact("retransmits", job.net("tcp", "retransmits"), report.fact("retransmits"));
    agree.exact("connections, one of them to nobody", job.net("tcp", "connections"), 2);
    agree.end();
}

#[test]
fn a_job_without_traffic_has_no_line() {
    let (job, _) = Traced::report(&[], &[env!("CARGO_BIN_EXE_rest"), "sleep", "1", "10"]);
    assert!(job.json.get(NET.key).is_none(), "{}", job.json[NET.key]);
}

#[test]
fn two_jobs_of_the_agent_have_what_each_received_by_either_hierarchy() {
    let found = Hierarchies::read().unwrap();
    let v1 = found.v1("freezer").is_some().then_some(("freezer", "freezer"));
    for (hierarchy, controller) in found.v2.iter().map(|_| ("v2", "")).chain(v1) {
        let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
        let place = Shaped::make(&[controller]);
        let (one, two) = (place.job(0, 71, "step_0"), place.job(0, 72, "step_0"));
        let procs = two.0.iter().map(|directory| directory.join("cgroup.procs"));
        let procs: Vec<_> = procs.map(|path| path.to_str().unwrap().to_owned()).collect();
        // The one receives what a child of it sends from the other.
        let (count, bytes) = (COUNT.to_string(), BYTES.to_string());
        let mut words = vec![MESSAGES, "tcp", "calls", &count, &bytes];
        words.extend(procs.iter().map(String::as_str));
        let report = workload::report(&one.run(&words)).unwrap();
        let points = agent.stop().unwrap();
        let mut agree = Agreement::new();
        for (job, fields, others) in
            [("71", &FIELDS[2..], &FIELDS[..2]), ("72", &FIELDS[..2], &FIELDS[2..])]
        {
            for field in fields {
                let what = format!("{hierarchy}, job {job}: {field}");
                agree.exact(&what, points.sum(job, "job_net", field), report.fact(field));
            }
            for field in others {
                let what = format!("{hierarchy}, job {job}: {field}");
                agree.exact(&what, points.sum(job, "job_net", field), 0);
            }
        }
        agree.exact("connections", points.sum("71", "job_net", "connections"), 1);
        assert_eq!(points.tags("71", "job_net", "family"), ["tcp"].into());
        assert_eq!(points.last_own("shed_net"), Some(0));
        agree.end();
    }
}

#[test]
fn the_nodes_devices_count_for_nobody() {
    let device = Path::new("/sys/class/net");
    let devices = std::fs::read_dir(device).unwrap().map(|entry| entry.unwrap().path());
    let hardware: Vec<_> = devices.filter(|device| device.join("device").exists()).collect();
    let Some(device) = hardware.first() else {
        // None is told of then, but what has ports (`mlx5_0/1`) is told of elsewhere.
        let agent = Agent::start("").unwrap();
        agent.settle().unwrap();
        let points = agent.stop().unwrap();
        let is_port = |point: &Point| point.tag("device").contains('/');
        assert!(points.0.iter().all(|point| point.measurement != "node_net" || is_port(point)));
        return;
    };
    let received = || {
        let text = std::fs::read_to_string(device.join("statistics/rx_bytes")).unwrap();
        text.trim().parse::<u64>().unwrap()
    };
    let before = received();
    let agent = Agent::start("").unwrap();
    let begun = received();
    agent.settle().unwrap();
    let ended = received();
    let points = agent.stop().unwrap();
    let after = received();
    let mut agree = Agreement::new();
    let name = device.file_name().unwrap().to_str().unwrap();
    let of_device = points.only(|point| point.tag("device") == name);
    let counted = of_device.sum("_system", "node_net", "received_bytes");
    agree.between(&format!("{name}: received_bytes"), counted, ended - begun..=after - before);
    agree.exact(
        "of jobs",
        points.total("node_net", "received_bytes")
            - points.sum("_system", "node_net", "received_bytes"),
        0,
    );
    agree.end();
}
