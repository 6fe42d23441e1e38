//! Sockets: two that are connected, and one that nobody answers.

use std::{
    io,
    mem::{size_of, zeroed},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::net::{UnixDatagram, UnixStream},
    },
    time::Duration,
};

/// Two ends of a connection.
pub fn pair(family: &str) -> (OwnedFd, OwnedFd) {
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

/// A connection to a listener that is full: gives how many segments TCP has sent again.
pub fn lost() -> u64 {
    // SAFETY: sockets of ours, and structs that the kernel reads and fills.
    unsafe {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert_eq!(libc::listen(listener.as_raw_fd(), 0), 0);
        let address = listener.local_addr().unwrap();
        let _first = TcpStream::connect(address).unwrap();
        // Before the first is in the listener's queue a second one would be answered, and nothing lost.
        until(|| Some(tcp_info(&listener).tcpi_unacked).filter(|queued| *queued > 0));
        let SocketAddr::V4(address) = address else { unreachable!() };
        let mut to: libc::sockaddr_in = zeroed();
        to.sin_family = libc::AF_INET as u16;
        to.sin_port = address.port().to_be();
        to.sin_addr.s_addr = u32::from_ne_bytes(address.ip().octets());
        let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK;
        let second = OwnedFd::from_raw_fd(libc::socket(libc::AF_INET, kind, 0));
        libc::connect(second.as_raw_fd(), (&raw const to).cast(), size_of_val(&to) as u32);
        until(|| Some(tcp_info(&second).tcpi_total_retrans).filter(|segments| *segments > 0)).into()
    }
}

/// What the kernel tells of a TCP socket.
fn tcp_info(socket: &impl AsRawFd) -> libc::tcp_info {
    // SAFETY: the kernel fills at most a struct of that size, for which zeros are valid.
    unsafe {
        let mut info: libc::tcp_info = zeroed();
        let mut bytes = size_of_val(&info) as u32;
        let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
        let place = (&raw mut info).cast();
        assert_eq!(libc::getsockopt(socket.as_raw_fd(), level, option, place, &mut bytes), 0);
        info
    }
}

/// What `look` finds, which a busy machine may take its time for.
fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..1_000 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("not found within 50 s");
}
