//! Waits that end by themselves: timers, and calls that give up after a while.

use std::{
    ffi::CStr,
    io,
    mem::zeroed,
    os::unix::net::{UnixDatagram, UnixListener},
    ptr::{null, null_mut},
    time::Duration,
};

use jobtrace_tests::work::off_cpu_ns;

use super::{Amount, Cause, Waited};

pub const CAUSES: &[Cause] = &[
    ("timer", timer),
    ("futex", futex),
    ("poll", poll),
    ("socket", socket),
    ("signal", signal),
    ("pause", pause),
    ("semaphore", semaphore),
    ("mq", mq),
];

/// As a time of the kernel's.
pub fn timespec(time: Duration) -> libc::timespec {
    libc::timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() }
}

fn timeval(time: Duration) -> libc::timeval {
    libc::timeval { tv_sec: time.as_secs() as i64, tv_usec: time.subsec_micros().into() }
}

/// Does `wait` as often as asked for.
fn each(amount: &Amount, wait: impl Fn(u64)) -> Waited {
    off_cpu_ns(|| (0..amount.count).for_each(wait)).into()
}

/// The error that the call before must have ended with.
pub fn ended_with(number: i32, result: i64) {
    let error = io::Error::last_os_error();
    assert!(result == -1 && error.raw_os_error() == Some(number), "{result}, {error}");
}

/// Both calls in turn.
fn timer(amount: &Amount) -> Waited {
    let time = timespec(amount.time);
    each(amount, |index| {
        // SAFETY: a time of ours.
        let result = unsafe {
            match index % 2 {
                0 => libc::syscall(libc::SYS_nanosleep, &time, null_mut::<libc::timespec>()),
                _ => libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &time, null_mut()).into(),
            }
        };
        assert_eq!(result, 0);
    })
}

/// A word that nobody ever wakes.
fn futex(amount: &Amount) -> Waited {
    let (word, time) = (0_u32, timespec(amount.time));
    each(amount, |_| {
        // SAFETY: a word and a time of ours.
        let result =
            unsafe { libc::syscall(libc::SYS_futex, &raw const word, libc::FUTEX_WAIT, 0, &time) };
        ended_with(libc::ETIMEDOUT, result);
    })
}

/// All six calls in turn, on a socket that stays silent.
fn poll(amount: &Amount) -> Waited {
    use std::os::fd::AsRawFd;
    let (socket, _other) = UnixDatagram::pair().unwrap();
    let fd = socket.as_raw_fd();
    let (ms, time, old_time) =
        (amount.time.as_millis() as i32, timespec(amount.time), timeval(amount.time));
    // SAFETY: a descriptor and an event of ours.
    let epoll = unsafe {
        let epoll = libc::epoll_create1(0);
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        assert_eq!(libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event), 0);
        epoll
    };
    let waited = each(amount, |index| {
        let mut one = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: all arguments are ours; the kernel may change the times.
        let result = unsafe {
            let mut event = zeroed();
            let mut set: libc::fd_set = zeroed();
            libc::FD_SET(fd, &mut set);
            let mut left = old_time;
            match index % 6 {
                0 => libc::poll(&mut one, 1, ms),
                1 => libc::ppoll(&mut one, 1, &time, null()),
                2 => libc::select(fd + 1, &mut set, null_mut(), null_mut(), &mut left),
                3 => libc::pselect(fd + 1, &mut set, null_mut(), null_mut(), &time, null()),
                4 => libc::epoll_wait(epoll, &mut event, 1, ms),
                _ => libc::epoll_pwait(epoll, &mut event, 1, ms, null()),
            }
        };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
    });
    // SAFETY: ours.
    unsafe { libc::close(epoll) };
    waited
}

/// To receive what nobody sends, and to accept whom nobody connects.
fn socket(amount: &Amount) -> Waited {
    use std::os::{fd::AsRawFd, linux::net::SocketAddrExt};
    let (socket, _other) = UnixDatagram::pair().unwrap();
    socket.set_read_timeout(Some(amount.time)).unwrap();
    let name = format!("jobtrace-wait-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    let time = timeval(amount.time);
    // SAFETY: a time of ours.
    let set = unsafe {
        libc::setsockopt(
            listener.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            (&raw const time).cast(),
            size_of::<libc::timeval>() as u32,
        )
    };
    assert_eq!(set, 0);
    each(amount, |index| {
        let mut buffer = [0; 16];
        // SAFETY: descriptors and buffers of ours.
        let result = unsafe {
            match index % 3 {
                0 => libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), 16, 0),
                1 => {
                    let mut message: libc::msghdr = zeroed();
                    let mut part =
                        libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: 16 };
                    (message.msg_iov, message.msg_iovlen) = (&mut part, 1);
                    libc::recvmsg(socket.as_raw_fd(), &mut message, 0)
                }
                _ => libc::accept(listener.as_raw_fd(), null_mut(), null_mut()) as isize,
            }
        };
        ended_with(libc::EAGAIN, result as i64);
    })
}

/// A signal that nobody sends.
fn signal(amount: &Amount) -> Waited {
    let time = timespec(amount.time);
    each(amount, |_| {
        // SAFETY: a set and a time of ours.
        let result = unsafe {
            let mut set = zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGUSR1);
            libc::sigtimedwait(&set, null_mut(), &time)
        };
        ended_with(libc::EAGAIN, result.into());
    })
}

/// Any signal: a timer's, which comes again and again.
fn pause(amount: &Amount) -> Waited {
    let _ticks = Ticks::every(amount.time, ignore);
    // SAFETY: a set of ours.
    let open = unsafe {
        let mut set = zeroed();
        libc::sigemptyset(&mut set);
        set
    };
    each(amount, |index| {
        // SAFETY: the same.
        let result =
            unsafe { if index % 2 == 0 { libc::pause() } else { libc::sigsuspend(&open) } };
        ended_with(libc::EINTR, result.into());
    })
}

/// A handler that only interrupts.
pub extern "C" fn ignore(_: i32) {}

/// SIGALRM again and again, while the value lives.
pub struct Ticks;

impl Ticks {
    /// Each `time`, to `handler`; calls that it interrupts are not restarted.
    pub fn every(time: Duration, handler: extern "C" fn(i32)) -> Self {
        // SAFETY: a handler that lives as long as the program.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            action.sa_sigaction = handler as *const () as usize;
            assert_eq!(libc::sigaction(libc::SIGALRM, &action, null_mut()), 0);
        }
        Self::set(time, time);
        Self
    }

    /// One after `time`; another each second, for where that one came before what it is to interrupt.
    pub fn after(time: Duration, handler: extern "C" fn(i32)) -> Self {
        let ticks = Self::every(Duration::ZERO, handler);
        Self::set(time, Duration::from_secs(1));
        ticks
    }

    fn set(first: Duration, interval: Duration) {
        let (it_value, it_interval) = (timeval(first), timeval(interval));
        let both = libc::itimerval { it_interval, it_value };
        // SAFETY: times of ours.
        let set = unsafe { libc::syscall(libc::SYS_setitimer, 0, &both, 0) };
        assert_eq!(set, 0);
    }
}

impl Drop for Ticks {
    fn drop(&mut self) {
        Self::set(Duration::ZERO, Duration::ZERO);
    }
}

/// A System V semaphore that nobody raises; removed when dropped.
struct Semaphore(i32);

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { libc::semctl(self.0, 0, libc::IPC_RMID) };
    }
}

fn semaphore(amount: &Amount) -> Waited {
    // SAFETY: no memory is passed.
    let semaphore = Semaphore(unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) });
    assert!(semaphore.0 >= 0, "semget: {}", io::Error::last_os_error());
    let time = timespec(amount.time);
    each(amount, |_| {
        let mut lower = libc::sembuf { sem_num: 0, sem_op: -1, sem_flg: 0 };
        // SAFETY: an operation and a time of ours.
        let result = unsafe {
            libc::syscall(libc::SYS_semtimedop, semaphore.0, &raw mut lower, 1_usize, &time)
        };
        ended_with(libc::EAGAIN, result);
    })
}

/// A POSIX message queue to which nobody sends.
fn mq(amount: &Amount) -> Waited {
    let name = format!("/jobtrace-wait-{}\0", std::process::id());
    let name = CStr::from_bytes_with_nul(name.as_bytes()).unwrap();
    // SAFETY: a name of ours; its queue lives as long as the descriptor.
    let queue = unsafe {
        let queue = libc::mq_open(
            name.as_ptr(),
            libc::O_RDWR | libc::O_CREAT,
            0o600 as libc::mode_t,
            null_mut::<libc::mq_attr>(),
        );
        assert!(queue >= 0, "mq_open: {}", io::Error::last_os_error());
        libc::mq_unlink(name.as_ptr());
        queue
    };
    each(amount, |_| {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let until = timespec(Duration::new(now.tv_sec as u64, now.tv_nsec as u32) + amount.time);
        let mut buffer = vec![0; 64 << 10];
        // SAFETY: a buffer and a time of ours.
        let result = unsafe {
            libc::mq_timedreceive(queue, buffer.as_mut_ptr(), buffer.len(), null_mut(), &until)
        };
        ended_with(libc::ETIMEDOUT, result as i64);
    })
}
