//! The network under `jobtrace run`, against what both ends counted, beside a sibling that does the same.

use jobtrace_tests::{account::Report, agree::Agreement, sibling::Sibling, traced::Traced};

use super::{Found, unknown, workload};

const COUNT: &str = "100";
const BYTES: &str = "5000";
const FIELDS: [&str; 4] = ["sent_bytes", "sent_calls", "received_bytes", "received_calls"];
/// Where a call is several messages or several messages a call.
const BYTES_ALONE: [&str; 2] = ["sent_bytes", "received_bytes"];

/// Every way of sending, in every family.
pub fn messages() -> Found {
    let mut agree = Agreement::new();
    for (sockets, family) in
        [("tcp", "tcp"), ("udp", "udp"), ("unix", "unix"), ("datagrams", "unix")]
    {
        exact(&mut agree, sockets, "calls", family, &FIELDS)?;
    }
    for (sockets, family) in [("tcp", "tcp"), ("unix", "unix")] {
        exact(&mut agree, sockets, "file", family, &BYTES_ALONE)?;
        exact(&mut agree, sockets, "splice", family, &BYTES_ALONE)?;
    }
    exact(&mut agree, "tcp", "zerocopy", "tcp", &FIELDS)?;
    exact(&mut agree, "tcp", "ring", "tcp", &BYTES_ALONE)?;
    exact(&mut agree, "udp", "many", "udp", &FIELDS)?;
    Ok(agree)
}

/// What is spliced from a socket.
pub fn spliced() -> Found {
    let mut agree = Agreement::new();
    for (sockets, family) in [("tcp", "tcp"), ("unix", "unix")] {
        let job = exact(&mut agree, sockets, "spliced", family, &["sent_bytes"])?;
        if let Some(note) = unknown(&job.0, "sock_splice_read") {
            return Err(note);
        }
        for field in ["received_bytes", "received_calls"] {
            let what = format!("{sockets}, spliced: {field}");
            agree.exact(&what, job.0.net(family, field), job.1.fact(field));
        }
    }
    Ok(agree)
}

/// Segments that TCP sent again.
pub fn sent_again() -> Found {
    let (messages, mut agree) = (workload("messages"), Agreement::new());
    let (job, report) = Traced::report(&[], &[&messages, "lost"]);
    agree.exact("connections", job.net("tcp", "connections"), 2);
    if let Some(note) = unknown(&job, "tcp_retransmit") {
        return Err(note);
    }
    agree.exact("retransmits", job.net("tcp", "retransmits"), report.fact("retransmits"));
    Ok(agree)
}

/// Messages of `sockets` by `way`, whose `known` fields are those of the workload; or why this kernel does not
/// tell of any.
fn exact(
    agree: &mut Agreement,
    sockets: &str,
    way: &str,
    family: &str,
    known: &[&str],
) -> Result<(Traced, Report), String> {
    let messages = workload("messages");
    let command = [&*messages, sockets, way, COUNT, BYTES];
    // The emulation takes its time: once in each family is enough.
    let sibling = (way == "calls").then(|| Sibling::start(&command));
    let (job, report) = Traced::report(&[], &command);
    sibling.map(Sibling::end);
    if let Some(note) = unknown(&job, "inet_sendmsg") {
        return Err(note);
    }
    for field in known {
        let what = format!("{sockets} {way}: {field}");
        agree.exact(&what, job.net(family, field), report.fact(field));
    }
    Ok((job, report))
}
