//! `messages FAMILY WAY COUNT BYTES [PROCS…]`: COUNT messages of BYTES each from one process to another, who
//! both count what their calls gave them. FAMILY is `tcp`, `udp`, `unix` (a stream), `datagrams` (of unix) or
//! `netlink`; WAY `calls`, `many` (sendmmsg, recvmmsg), `file` (sendfile), `splice` (to the socket),
//! `spliced` (from it), `zerocopy` or `ring` (io_uring). Where PROCS name cgroups, the sender leaves for
//! these. `messages lost`: a connection that nobody answers, until its first segment was sent again.

use std::{
    fs::File,
    io::{self, Write},
    mem::{size_of, zeroed},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::{
        fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
        unix::net::{UnixDatagram, UnixStream},
    },
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use jobtrace_tests::{
    uring::Ring,
    work::{Pages, Work, enter, fork},
};

/// Of `sendmmsg` and `recvmmsg`.
const AT_ONCE: usize = 8;
/// Datagrams on their way at once: fewer than any queue holds.
const UNDER_WAY: u64 = 8;
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
        work.fact("retransmits", lost());
        return work.end();
    }
    // An end that waits for one that failed ends too.
    // SAFETY: it only sets a timer.
    unsafe { libc::alarm(PATIENCE_S) };
    let (family, way) = (&*words[0], &*words[1]);
    let (count, bytes) = (words[2].parse().unwrap(), words[3].parse().unwrap());
    let shared = Pages::shared(1);
    let (sender, receiver) = pair(family);
    let stream = ["tcp", "unix"].contains(&family);
    let pid = fork(|| {
        enter(&words[4..]);
        send(way, &sender, stream, count, bytes, shared.words());
    });
    drop(sender);
    receive(way, &receiver, stream, count, bytes, shared.words());
    assert_eq!(work.reap(pid), 0);
    for (name, word) in NAMES.iter().zip(shared.words()) {
        work.fact(name, word.load(Ordering::SeqCst));
    }
    work.end();
}

/// Two ends of a connection.
fn pair(family: &str) -> (OwnedFd, OwnedFd) {
    match family {
        "tcp" => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (sender.into(), listener.accept().unwrap().0.into())
        }
        "udp" => {
            let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let (sender, receiver) = (bind(), bind());
            // An error sends nothing.
            assert!(sender.send(b"nobody").is_err());
            sender.connect(receiver.local_addr().unwrap()).unwrap();
            (sender.into(), receiver.into())
        }
        "unix" => UnixStream::pair().map(|(a, b)| (a.into(), b.into())).unwrap(),
        "datagrams" => UnixDatagram::pair().map(|(a, b)| (a.into(), b.into())).unwrap(),
        "netlink" => netlink(),
        other => panic!("unknown family {other}"),
    }
}

/// Two ends of netlink between processes.
fn netlink() -> (OwnedFd, OwnedFd) {
    let open = || {
        // SAFETY: a descriptor of our own.
        unsafe {
            let fd = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_USERSOCK);
            assert!(fd >= 0, "socket: {}", io::Error::last_os_error());
            OwnedFd::from_raw_fd(fd)
        }
    };
    let (sender, receiver) = (open(), open());
    // SAFETY: addresses of that size, zeros but for the family.
    unsafe {
        let mut address: libc::sockaddr_nl = zeroed();
        let mut bytes = size_of::<libc::sockaddr_nl>() as u32;
        address.nl_family = libc::AF_NETLINK as u16;
        assert_eq!(libc::bind(receiver.as_raw_fd(), (&raw const address).cast(), bytes), 0);
        libc::getsockname(receiver.as_raw_fd(), (&raw mut address).cast(), &mut bytes);
        assert_eq!(libc::connect(sender.as_raw_fd(), (&raw const address).cast(), bytes), 0);
    }
    (sender, receiver)
}

/// Adds what a call gave; fails where it failed.
fn add(to: &[AtomicU64], given: isize, calls: u64) {
    assert!(given >= 0, "{}", io::Error::last_os_error());
    to[0].fetch_add(given as u64, Ordering::SeqCst);
    to[1].fetch_add(calls, Ordering::SeqCst);
}

fn send(way: &str, to: &OwnedFd, stream: bool, count: u64, bytes: usize, shared: &[AtomicU64]) {
    let (own, theirs) = (&shared[SENT..RECEIVED], &shared[RECEIVED..]);
    let (fd, data) = (to.as_raw_fd(), vec![7_u8; bytes]);
    let total = count * bytes as u64;
    let call = |data: &[u8], flags: i32| {
        // SAFETY: the kernel reads the data.
        add(own, unsafe { libc::send(fd, data.as_ptr().cast(), data.len(), flags) }, 1);
    };
    let wait = || {
        let on_their_way =
            || own[1].load(Ordering::SeqCst).saturating_sub(theirs[1].load(Ordering::SeqCst));
        while !stream && on_their_way() >= UNDER_WAY {
            std::thread::sleep(Duration::from_micros(50));
        }
    };
    let sent = || own[0].load(Ordering::SeqCst);
    let none = std::ptr::null_mut();
    match way {
        "file" => {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&vec![7; total as usize]).unwrap();
            let mut at = 0;
            while sent() < total {
                let left = (total - sent()) as usize;
                // SAFETY: two descriptors and an offset of ours.
                add(own, unsafe { libc::sendfile(fd, file.as_raw_fd(), &mut at, left) }, 1);
            }
        }
        "splice" => {
            let (from, mut into) = io::pipe().unwrap();
            for _ in 0..count {
                into.write_all(&data).unwrap();
                let end = sent() + bytes as u64;
                while sent() < end {
                    let left = (end - sent()) as usize;
                    // SAFETY: two descriptors.
                    add(own, unsafe { libc::splice(from.as_raw_fd(), none, fd, none, left, 0) }, 1);
                }
            }
        }
        "zerocopy" => {
            let on = 1_i32;
            // SAFETY: the kernel reads a word.
            let set = unsafe {
                let (level, name) = (libc::SOL_SOCKET, libc::SO_ZEROCOPY);
                libc::setsockopt(fd, level, name, (&raw const on).cast(), 4)
            };
            assert_eq!(set, 0, "SO_ZEROCOPY: {}", io::Error::last_os_error());
            (0..count).for_each(|_| call(&data, libc::MSG_ZEROCOPY));
            told_of(fd, count);
        }
        "many" => {
            let mut left = count as usize;
            while left > 0 {
                wait();
                // SAFETY: messages of one part each, which lives as long.
                unsafe {
                    let mut part =
                        libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: bytes };
                    let mut messages: [libc::mmsghdr; AT_ONCE] = zeroed();
                    for message in &mut messages {
                        (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (&mut part, 1);
                    }
                    let most = left.min(AT_ONCE) as u32;
                    let done = libc::sendmmsg(fd, messages.as_mut_ptr(), most, 0);
                    assert!(done > 0, "sendmmsg: {}", io::Error::last_os_error());
                    for message in &messages[..done as usize] {
                        add(own, message.msg_len as isize, 1);
                    }
                    left -= done as usize;
                }
            }
        }
        "ring" => {
            let ring = Ring::new().expect("io_uring is there");
            for _ in 0..count {
                wait();
                add(own, ring.send(to.as_fd(), &data) as isize, 1);
            }
        }
        _ => {
            for _ in 0..count {
                wait();
                call(&data, 0);
            }
            // Nothing is a message too.
            if !stream {
                call(&[], 0);
            }
        }
    }
    // SAFETY: a socket.
    unsafe { libc::shutdown(fd, libc::SHUT_WR) };
}

/// Reads from the error queue until `count` messages are said to have been sent without a copy.
fn told_of(fd: i32, count: u64) {
    let mut told = 0;
    while told < count {
        let mut control = [0_u8; 128];
        // SAFETY: a message with room for its control part, whose last 16 bytes are those of an error: its
        // range of messages is in the last two words.
        unsafe {
            let mut message: libc::msghdr = zeroed();
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = control.len();
            if libc::recvmsg(fd, &mut message, libc::MSG_ERRQUEUE) < 0 {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            let error = libc::CMSG_DATA(libc::CMSG_FIRSTHDR(&message)).cast::<u32>();
            told += u64::from(error.add(3).read() - error.add(2).read()) + 1;
        }
    }
}

fn receive(
    way: &str,
    from: &OwnedFd,
    stream: bool,
    count: u64,
    bytes: usize,
    shared: &[AtomicU64],
) {
    let own = &shared[RECEIVED..];
    let (fd, mut data) = (from.as_raw_fd(), vec![0_u8; bytes.max(1)]);
    let call = |data: &mut [u8], flags: i32| {
        // SAFETY: the kernel writes the data.
        unsafe { libc::recv(fd, data.as_mut_ptr().cast(), data.len(), flags) }
    };
    let received = || (own[0].load(Ordering::SeqCst), own[1].load(Ordering::SeqCst));
    let is_done = |given: isize| stream && given == 0;
    // Only looked at, and still there.
    assert!(call(&mut data, libc::MSG_PEEK) > 0);
    match way {
        "many" => {
            while received().1 < count {
                // SAFETY: messages of one part each, which lives as long; all into one place.
                unsafe {
                    let mut part =
                        libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: bytes };
                    let mut messages: [libc::mmsghdr; AT_ONCE] = zeroed();
                    for message in &mut messages {
                        (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (&mut part, 1);
                    }
                    let (first, none) = (messages.as_mut_ptr(), std::ptr::null_mut());
                    let flags = libc::MSG_WAITFORONE;
                    let done = libc::recvmmsg(fd, first, AT_ONCE as u32, flags, none);
                    assert!(done > 0, "recvmmsg: {}", io::Error::last_os_error());
                    for message in &messages[..done as usize] {
                        add(own, message.msg_len as isize, 1);
                    }
                }
            }
        }
        "ring" => {
            let ring = Ring::new().expect("io_uring is there");
            loop {
                let given = ring.receive(from.as_fd(), &mut data) as isize;
                add(own, given, 1);
                if is_done(given) || !stream && received().1 == count {
                    break;
                }
            }
        }
        "spliced" => {
            let (out, into) = io::pipe().unwrap();
            let nowhere = File::options().write(true).open("/dev/null").unwrap();
            let none = std::ptr::null_mut();
            loop {
                // SAFETY: descriptors of ours.
                let given = unsafe { libc::splice(fd, none, into.as_raw_fd(), none, bytes, 0) };
                add(own, given, 1);
                if given == 0 {
                    break;
                }
                let (out, nowhere) = (out.as_raw_fd(), nowhere.as_raw_fd());
                // SAFETY: as above.
                let rest = unsafe { libc::splice(out, none, nowhere, none, given as usize, 0) };
                assert_eq!(rest, given, "splice: {}", io::Error::last_os_error());
            }
        }
        _ => loop {
            let given = call(&mut data, 0);
            add(own, given, 1);
            // The empty one comes last.
            if given == 0 {
                break;
            }
            if !stream && way != "calls" && received().1 == count {
                break;
            }
        },
    }
    // Nothing there is nothing received.
    assert!(stream || call(&mut data, libc::MSG_DONTWAIT) < 0);
}

/// A connection to a listener that is full: gives how many segments TCP has sent again.
fn lost() -> u64 {
    // SAFETY: sockets of ours, and structs that the kernel reads and fills.
    unsafe {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert_eq!(libc::listen(listener.as_raw_fd(), 0), 0);
        let address = listener.local_addr().unwrap();
        let _first = TcpStream::connect(address).unwrap();
        let SocketAddr::V4(address) = address else { unreachable!() };
        let mut to: libc::sockaddr_in = zeroed();
        to.sin_family = libc::AF_INET as u16;
        to.sin_port = address.port().to_be();
        to.sin_addr.s_addr = u32::from_ne_bytes(address.ip().octets());
        let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK;
        let second = OwnedFd::from_raw_fd(libc::socket(libc::AF_INET, kind, 0));
        libc::connect(second.as_raw_fd(), (&raw const to).cast(), size_of_val(&to) as u32);
        loop {
            std::thread::sleep(Duration::from_millis(50));
            let mut info: libc::tcp_info = zeroed();
            let mut bytes = size_of::<libc::tcp_info>() as u32;
            let place = (&raw mut info).cast();
            libc::getsockopt(
                second.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                place,
                &mut bytes,
            );
            if info.tcpi_total_retrans > 0 {
                return info.tcpi_total_retrans.into();
            }
        }
    }
}
