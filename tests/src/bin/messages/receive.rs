//! The end that receives.

use std::{
    fs::File,
    io,
    mem::zeroed,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::atomic::{AtomicU64, Ordering},
};

use jobtrace_tests::uring::Ring;

use crate::{AT_ONCE, RECEIVED, add};

/// Receives what was sent by `way` to its end, and counts it in `shared`.
pub fn receive(
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
