//! The machine's wall clock, stepped for a test and stepped back. No namespace has a wall clock of its
//! own, and a program that asks the vDSO cannot be deceived by a preloaded library, so it is the real
//! one: keep the steps small and the test short.
//!
//! A step adds an offset (`ADJ_SETOFFSET`) and is undone by its opposite, so nothing that the clock
//! is told meanwhile, by NTP say, is lost. A process apart does both: it undoes the steps as well when
//! the test is killed.

use std::{
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, RawFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail, ensure};

const SECOND_NS: i64 = 1_000_000_000;
const ADJ_NANO: u32 = 0x2000;
const ADJ_SETOFFSET: u32 = 0x0100;
/// How long a step may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// The right to step the clock; the steps are undone when it is dropped.
#[derive(Debug)]
pub struct WallClock {
    orders: Option<UnixStream>,
    keeper: i32,
}

impl WallClock {
    /// Starts the process that steps.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn hold() -> Result<Self> {
        let (orders, theirs) = UnixStream::pair().context("cannot make a socket pair")?;
        orders.set_read_timeout(Some(PATIENCE))?;
        let their_fd = theirs.as_raw_fd();
        // SAFETY: the caller may have threads, so the child makes system calls only.
        let keeper = unsafe {
            match libc::fork() {
                0 => keep(their_fd),
                -1 => bail!("cannot fork: {}", io::Error::last_os_error()),
                pid => pid,
            }
        };
        Ok(Self { orders: Some(orders), keeper })
    }

    /// Steps the clock by so many nanoseconds; several steps add up.
    ///
    /// # Errors
    /// When the kernel refuses: CAP_SYS_TIME is needed.
    pub fn step(&self, by_ns: i64) -> Result<()> {
        let mut orders = self.orders.as_ref().context("the clock was given back")?;
        orders.write_all(&by_ns.to_ne_bytes()).context("the clock's keeper is gone")?;
        let mut answer = [0; 4];
        orders.read_exact(&mut answer).context("the clock's keeper does not answer")?;
        let errno = i32::from_ne_bytes(answer);
        ensure!(
            errno == 0,
            "cannot step the clock, is this root: {}",
            io::Error::from_raw_os_error(errno)
        );
        Ok(())
    }
}

impl Drop for WallClock {
    fn drop(&mut self) {
        self.orders = None;
        let mut status = 0;
        // SAFETY: a child of ours, reaped once.
        let reaped = unsafe { libc::waitpid(self.keeper, &mut status, 0) };
        if reaped != self.keeper || status != 0 {
            eprintln!("the clock may still be stepped: wait status {status}");
        }
    }
}

/// What the wall clock is ahead of the monotonic one: only a step changes it at once.
pub fn wall_less_monotonic_ns() -> i64 {
    let monotonic = || crate::work::monotonic_ns() as i64;
    // The closest of several readings, because the process may be taken off its CPU between two.
    let reading = |_| {
        let (begin, before) = (Instant::now(), monotonic());
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (begin.elapsed(), wall.as_nanos() as i64 - before)
    };
    (0..20).map(reading).min().map_or(0, |(_, offset)| offset)
}

/// The keeper: obeys until the other end is closed, then undoes all. System calls only.
///
/// # Safety
/// In the child of a fork alone; `orders` is open.
unsafe fn keep(orders: RawFd) -> ! {
    let mut sum: i64 = 0;
    // SAFETY: descriptors that are open or not, and memory of this function.
    unsafe {
        // A signal for the test's terminal or group must not end it before its work is done. It holds
        // no file of the test's open but the end of the socket.
        libc::setsid();
        libc::dup2(orders, 3);
        libc::close_range(4, u32::MAX, 0);
        loop {
            let mut order = [0_u8; 8];
            let got = libc::read(3, order.as_mut_ptr().cast(), order.len());
            if got != order.len() as isize {
                break;
            }
            let by_ns = i64::from_ne_bytes(order);
            let errno = step(by_ns);
            if errno == 0 {
                sum += by_ns;
            }
            let answer = errno.to_ne_bytes();
            libc::write(3, answer.as_ptr().cast(), answer.len());
        }
        libc::_exit(if sum == 0 { 0 } else { step(-sum) })
    }
}

/// Gives errno, or 0.
fn step(by_ns: i64) -> i32 {
    // SAFETY: zeros are a valid value, and the kernel reads and writes the struct alone.
    unsafe {
        let mut change: libc::timex = std::mem::zeroed();
        change.modes = ADJ_SETOFFSET | ADJ_NANO;
        change.time.tv_sec = by_ns.div_euclid(SECOND_NS);
        // Nanoseconds, as ADJ_NANO says.
        change.time.tv_usec = by_ns.rem_euclid(SECOND_NS);
        if libc::adjtimex(&mut change) < 0 { *libc::__errno_location() } else { 0 }
    }
}
