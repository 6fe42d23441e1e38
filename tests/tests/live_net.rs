//! Live ring: the network against what both ends counted, exactly, beside a sibling that does the same.

use jobtrace::model::tables::NET;
use jobtrace_tests::{agree::Agreement, own_cgroup::OwnCgroup, sibling::Sibling, traced::Traced};
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
