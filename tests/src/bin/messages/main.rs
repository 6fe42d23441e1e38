//! `messages FAMILY WAY COUNT BYTES [PROCS…]`: COUNT messages of BYTES each from one process to another, who
//! both count what their calls gave them. FAMILY is `tcp`, `udp`, `unix` (a stream), `datagrams` (of unix) or
//! `netlink`; WAY `calls`, `many` (sendmmsg, recvmmsg), `file` (sendfile), `splice` (to the socket),
//! `spliced` (from it), `zerocopy` or `ring` (io_uring). Where PROCS name cgroups, the sender leaves for
//! these. `messages lost`: a connection that nobody answers, until its first segment was sent again.

mod receive;
mod send;
mod sockets;

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
};

use jobtrace_tests::work::{Pages, Work, enter, fork};

/// Of `sendmmsg` and `recvmmsg`.
const AT_ONCE: usize = 8;
/// How long all of it may take.
const PATIENCE_S: u32 = 60;
/// Words of the memory that both share: what the sender, then the receiver counted.
const SENT: usize = 0;
const RECEIVED: usize = 2;
const NAMES: [&str; 4] = ["sent_bytes", "sent_calls", "received_bytes", "received_calls"];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut work = Work::begin();
    if words[0] == "lost" {
        work.fact("retransmits", sockets::lost());
        return work.end();
    }
    // An end that waits for one that failed ends too.
    // SAFETY: it only sets a timer.
    unsafe { libc::alarm(PATIENCE_S) };
    let (family, way) = (&*words[0], &*words[1]);
    let (count, bytes) = (words[2].parse().unwrap(), words[3].parse().unwrap());
    let shared = Pages::shared(1);
    let (sender, receiver) = sockets::pair(family);
    let stream = ["tcp", "unix"].contains(&family);
    let pid = fork(|| {
        enter(&words[4..]);
        send::send(way, &sender, stream, count, bytes, shared.words());
    });
    drop(sender);
    receive::receive(way, &receiver, stream, count, bytes, shared.words());
    assert_eq!(work.reap(pid), 0);
    for (name, word) in NAMES.iter().zip(shared.words()) {
        work.fact(name, word.load(Ordering::SeqCst));
    }
    work.end();
}

/// Adds what a call gave; fails where it failed.
fn add(to: &[AtomicU64], given: isize, calls: u64) {
    assert!(given >= 0, "{}", io::Error::last_os_error());
    to[0].fetch_add(given as u64, Ordering::SeqCst);
    to[1].fetch_add(calls, Ordering::SeqCst);
}
