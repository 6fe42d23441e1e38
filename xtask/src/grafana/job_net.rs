//! The dashboard "Job": what it sent and received through sockets.

use super::{
    compose::term,
    spec::{Look, Panel, Row, Term, Value},
};

const FAMILY: &[&str] = &["family"];

fn net(value: Value) -> Term {
    term("job_net", value)
}

/// Both directions by protocol family, then what tells of a network in trouble.
pub fn network() -> Row {
    let sent = Panel::new(
        Look::Stack,
        "Bps",
        "Network: sent",
        "Bytes that the job's tasks sent through sockets, without headers. tcp and udp: to other \
         nodes, or to processes on this one. unix: to processes on this node. RDMA (most of MPI on \
         InfiniBand) is not included.",
    )
    .line("{family}", net(Value::Rate("sent_bytes")), FAMILY);
    let received = Panel::new(
        Look::Stack,
        "Bps",
        "Network: received",
        "The same for what the job's tasks received.",
    )
    .line("{family}", net(Value::Rate("received_bytes")), FAMILY);
    let size = Panel::new(
        Look::Lines,
        "bytes",
        "Mean size of a message sent",
        "Bytes for each call that sends. A call costs about the same CPU time whether it sends 1 byte \
         or 1 KiB: if many are small, collect what there is to send.",
    )
    .line("{family}", net(Value::Ratio("sent_bytes", "sent_calls")), FAMILY);
    let trouble = Panel::new(
        Look::Lines,
        "cps",
        "TCP: segments sent again, connections",
        "Sent again: the network lost a segment, or nobody confirmed it in time; if there are many, \
         the network is congested or faulty. Unknown, so empty, under cgroup v1 and before Linux \
         5.15. Connections: those that the job opened, whether or not somebody answered.",
    )
    .line("sent again", net(Value::Rate("retransmits")), &[])
    .line("connections", net(Value::Rate("connections")), &[]);
    Row { title: "Network", each: None, panels: vec![sent, received, size, trouble] }
}
