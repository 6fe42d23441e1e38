//! What the kernel keeps per job slot and CPU of the network: by protocol family, at the end of the bank.
#![allow(missing_docs, reason = "each field is explained by its row of the table below")]

use core::mem::offset_of;

use super::{
    fault::FAULT,
    job::{JobBank, SCHED},
};
use crate::{
    measurement,
    table::{
        Place::{Job, Net as OfFamily},
        described_bytes,
        fn_place::Of,
    },
};

/// Protocol families, in the order of [`JobBank::net`]; the names are the values of the tag `family`. A
/// power of two, so that a mask bounds an index.
pub const FAMILIES: [&str; 4] = ["tcp", "udp", "unix", "other"];

/// Index of each family in [`FAMILIES`].
pub mod family {
    /// TCP and MPTCP, over IPv4 and IPv6.
    pub const TCP: u32 = 0;
    /// UDP, over IPv4 and IPv6.
    pub const UDP: u32 = 1;
    /// Sockets of the host itself, of any type.
    pub const UNIX: u32 = 2;
    /// All others: netlink, packet, raw, vsock and so on.
    pub const OTHER: u32 = 3;
}

/// One slot's totals for one family on one CPU.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NetCounts {
    pub sent_bytes: u64,
    pub sent_calls: u64,
    pub received_bytes: u64,
    pub received_calls: u64,
}

measurement! {
    /// `job_net`: what the job's tasks sent and received through sockets.
    NET, Net = "job_net", key "net", tags ["family"],
        "What the job's tasks sent and received through sockets, by protocol family: tcp (with MPTCP), udp, unix, other (netlink, packet, raw, vsock and so on). Payload without headers, whichever device it passes, if any. What bypasses the kernel's sockets is not included: RDMA (InfiniBand verbs, RoCE, and most of MPI over them), AF_XDP, and what is received by TCP_ZEROCOPY_RECEIVE or io_uring's zero-copy receive. The traffic of a network file system counts for whoever runs it, mostly kernel threads in _system. A family without traffic has no line.";

    counter sent_bytes: Bytes in OfFamily(offset_of!(NetCounts, sent_bytes)),
        "Bytes sent (sock_send_length, from Linux 6.3 on). Before 6.3 they are counted as the protocols' functions return (inet_sendmsg, inet_sendpage and the like); that misses the family other, and what sendfile and splice send by UDP.";
    counter sent_calls: Count in OfFamily(offset_of!(NetCounts, sent_calls)),
        "Messages sent: socket calls that succeeded, not those that failed or would have blocked. sendfile and splice count as one for every 16 pages or fewer, sendmmsg as one for each message.";
    counter received_bytes: Bytes in OfFamily(offset_of!(NetCounts, received_bytes)),
        "Bytes received (sock_recv_length, from Linux 6.3 on; before as inet_recvmsg and the like return, which misses the family other). Data that was only peeked at (MSG_PEEK) and messages of the error queue are not included. Data spliced from TCP and unix sockets is included if programs can be attached to kernel functions (sock_splice_read).";
    counter received_calls: Count in OfFamily(offset_of!(NetCounts, received_calls)),
        "Messages received: socket calls that succeeded, including those that found the end of the stream or an empty message.";
    counter retransmits: Count in Job(offset_of!(JobBank, retransmits)),
        "TCP segments sent again (tcp_retransmit_skb), counted for the job that created the socket. Only in family tcp; only if jobs are identified in cgroup v2, from Linux 5.15 on.";
    counter connections: Count in Job(offset_of!(JobBank, connections)),
        "TCP connections opened by connect (inet_sock_set_state), whether or not the peer answered; accepted connections are not included. Only in family tcp.";
}

const _: () = assert!(
    described_bytes(&[&NET], Of::Net) == size_of::<NetCounts>(),
    "every field of NetCounts needs its row in NET"
);

const _: () = assert!(
    described_bytes(&[&SCHED, &FAULT, &NET], Of::Job) + size_of::<[NetCounts; FAMILIES.len()]>()
        == size_of::<JobBank>(),
    "every field of JobBank needs its row in SCHED, FAULT or NET"
);

const _: () = assert!(FAMILIES.len().is_power_of_two());
