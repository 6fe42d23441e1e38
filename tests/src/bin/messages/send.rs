//! The end that sends.

use std::{
    io::{self, Write},
    mem::zeroed,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use jobtrace_tests::uring::Ring;

use crate::{AT_ONCE, RECEIVED, SENT, add};

/// Datagrams on their way at once: fewer than any queue holds.
const UNDER_WAY: u64 = 8;

/// Sends `count` messages of `bytes` bytes each by `way`, and counts them in `shared`.
pub fn send(way: &str, to: &OwnedFd, stream: bool, count: u64, bytes: usize, shared: &[AtomicU64]) {
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
