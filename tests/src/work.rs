//! What the workloads (`src/bin`) are made of: known amounts of each kind of work, in processes whose
//! accounts are read when they are zombies, and so are complete.

use std::{
    fs::{self, File},
    hint::black_box,
    io::{self, Write},
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::Path,
    ptr::null_mut,
    sync::atomic::AtomicU64,
    time::{Duration, Instant},
};

use crate::account::{Account, Report, cgroup_usage_ns};

/// Bytes of a page; the amounts are counted in these.
pub const PAGE: usize = 4096;

/// A workload under way.
#[derive(Default)]
pub struct Work {
    report: Report,
}

impl Work {
    /// The first thing in `main`.
    pub fn begin() -> Self {
        let mut work = Self { report: Report { begin: Account::own(), ..Report::default() } };
        work.fact("begin_ns", monotonic_ns());
        work
    }

    /// Waits for `pid` to end and adds its account, faults those of its own children included. Gives
    /// the wait status.
    pub fn reap(&mut self, pid: i32) -> i32 {
        let (account, status) = reap(pid);
        self.report.children += account;
        status
    }

    /// Adds the accounts of descendants that this process did not reap itself.
    pub fn add_children(&mut self, account: Account) {
        self.report.children += account;
    }

    /// `count` children that do `work`, given their number, all at once; waits for them to end well.
    pub fn crowd(&mut self, count: usize, work: impl Fn(usize)) {
        let pids: Vec<i32> = (0..count).map(|index| fork(|| work(index))).collect();
        for pid in pids {
            assert_eq!(self.reap(pid), 0);
        }
    }

    /// Notes a fact for the report.
    pub fn fact(&mut self, name: &str, value: u64) {
        self.report.facts.insert(name.into(), value);
    }

    /// The last thing in `main`: writes the report.
    pub fn end(mut self) {
        self.report.usage_ns = cgroup_usage_ns();
        self.fact("end_ns", monotonic_ns());
        self.report.end = Account::own();
        let text = serde_json::to_vec(&self.report).unwrap();
        io::stdout().write_all(&text).unwrap();
    }
}

/// A child that does `work` and ends. The caller has one thread.
pub fn fork(work: impl FnOnce()) -> i32 {
    // SAFETY: with one thread, the child may do all that we may.
    match unsafe { libc::fork() } {
        0 => {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            // SAFETY: ends the child without our buffers.
            unsafe { libc::_exit(done.is_err().into()) }
        }
        -1 => panic!("fork: {}", io::Error::last_os_error()),
        pid => pid,
    }
}

/// Waits for the child `pid` to end; its account and its wait status.
pub fn reap(pid: i32) -> (Account, i32) {
    // SAFETY: out-parameters of ours; zeros are valid values of both.
    let (mut account, usage, status) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let waited =
            libc::waitid(libc::P_PID, pid as u32, &mut info, libc::WEXITED | libc::WNOWAIT);
        assert_eq!(waited, 0, "waitid: {}", io::Error::last_os_error());
        let account = settled(pid);
        let (mut usage, mut status): (libc::rusage, i32) = (std::mem::zeroed(), 0);
        assert_eq!(libc::wait4(pid, &mut status, 0, &mut usage), pid);
        (account, usage, status)
    };
    account.minor = usage.ru_minflt as u64;
    account.major = usage.ru_majflt as u64;
    (account, status)
}

/// The account of a zombie that has left its CPU for good. It is a zombie shortly before, may have to wait for a CPU once
/// more meanwhile, and where a host took its CPU away it may stay there for milliseconds: all that time it is `running`.
pub fn settled(pid: i32) -> Account {
    loop {
        std::thread::sleep(Duration::from_millis(1));
        let call = fs::read_to_string(format!("/proc/{pid}/syscall"));
        if call.expect("/proc/PID/syscall of a child") != "running\n" {
            return Account::of(pid);
        }
    }
}

/// Keeps a CPU busy for `time`.
pub fn spin(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        black_box((0..1000_u64).fold(0, |sum, value| black_box(sum ^ value)));
    }
}

/// For how long the calling thread has run.
pub fn on_cpu() -> Duration {
    let ran = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(ran.tv_sec as u64, ran.tv_nsec as u32)
}

/// Keeps a CPU busy until the calling thread has run for `time` more, however long it waits for it.
pub fn spin_on_cpu(time: Duration) {
    let end = on_cpu() + time;
    while on_cpu() < end {
        black_box((0..1000_u64).fold(0, |sum, value| black_box(sum ^ value)));
    }
}

/// The caller leaves its CPU when it sleeps only, or for one of a higher priority.
pub fn keep_cpu(priority: i32) {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: sets the scheduling of the caller.
    let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) };
    assert_eq!(set, 0, "SCHED_FIFO: {}", io::Error::last_os_error());
}

/// CLOCK_MONOTONIC, the clock of a snapshot's `monotonic_ns`.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Binds the calling thread to the `index`th CPU of those it may use, counted round and round.
pub fn pin(index: usize) {
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    let usable: Vec<usize> =
        (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect();
    let mut one = rustix::thread::CpuSet::new();
    one.set(usable[index % usable.len()]);
    rustix::thread::sched_setaffinity(None, &one).unwrap();
}

/// Does `work` and gives how long the calling task was neither on a CPU nor waiting for one meanwhile: 0 where it never
/// waited. A host that takes a CPU away from this machine while the task is on it makes this longer: such time is
/// in neither of the task's sums.
pub fn off_cpu_ns(work: impl FnOnce()) -> u64 {
    let run_delay_ns = || {
        let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        text.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    // Not schedstat's, which is as of the last tick.
    let on_cpu_ns = || on_cpu().as_nanos() as u64;
    let (waits, delay, on_cpu, begin) = (own_waits(), run_delay_ns(), on_cpu_ns(), Instant::now());
    work();
    let elapsed = begin.elapsed().as_nanos() as u64;
    let runs = on_cpu_ns() - on_cpu + run_delay_ns() - delay;
    // A disk whose host serves it on this very CPU is done before anybody could wait for it.
    if own_waits() == waits { 0 } else { elapsed.saturating_sub(runs) }
}

/// How often the calling thread has left its CPU of its own will.
fn own_waits() -> i64 {
    // SAFETY: a plain structure of numbers, which the call fills.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), 0);
        usage.ru_nvcsw
    }
}

/// Pages of memory, of which none has been touched.
pub struct Pages {
    address: *mut u8,
    bytes: usize,
}

impl Pages {
    /// `count` pages of fresh memory; never a huge one.
    pub fn fresh(count: usize) -> Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let pages = Self::map(count * PAGE, flags, -1);
        // SAFETY: a mapping of ours.
        unsafe { libc::madvise(pages.address.cast(), pages.bytes, libc::MADV_NOHUGEPAGE) };
        pages
    }

    /// `count` pages that children share with their maker.
    pub fn shared(count: usize) -> Self {
        Self::map(count * PAGE, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1)
    }

    /// All whole pages of a file that lie on disk only.
    pub fn of_uncached_file(path: &Path) -> Self {
        let file = File::open(path).unwrap();
        let bytes =
            io::Seek::seek(&mut &file, io::SeekFrom::End(0)).unwrap() as usize / PAGE * PAGE;
        // SAFETY: an open file.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        let pages = Self::map(bytes, libc::MAP_SHARED, file.as_raw_fd());
        // SAFETY: a mapping of ours. Random: each page is read when it is touched, and it alone.
        unsafe { libc::madvise(pages.address.cast(), bytes, libc::MADV_RANDOM) };
        pages
    }

    /// All of a file, in memory and held there.
    pub fn held_file(path: &Path) -> Self {
        let file = File::open(path).unwrap();
        let bytes = file.metadata().unwrap().len() as usize;
        let pages = Self::map(bytes.next_multiple_of(PAGE), libc::MAP_SHARED, file.as_raw_fd());
        // SAFETY: a mapping of ours.
        let held = unsafe { libc::mlock(pages.address.cast(), pages.bytes) };
        assert_eq!(held, 0, "mlock {}: {}", path.display(), io::Error::last_os_error());
        pages
    }

    fn map(bytes: usize, flags: i32, fd: i32) -> Self {
        let writable = if fd < 0 { libc::PROT_WRITE } else { 0 };
        // SAFETY: a new mapping, owned by the value made here.
        let address =
            unsafe { libc::mmap(null_mut(), bytes, libc::PROT_READ | writable, flags, fd, 0) };
        assert_ne!(address, libc::MAP_FAILED, "mmap: {}", io::Error::last_os_error());
        Self { address: address.cast(), bytes }
    }

    /// Writes a byte of each page.
    pub fn write(&self) {
        for at in (0..self.bytes).step_by(PAGE) {
            // SAFETY: within the mapping, which is writable where it is fresh.
            unsafe { self.address.add(at).write_volatile(1) };
        }
    }

    /// Reads a byte of each page; gives how many pages there are.
    pub fn read(&self) -> usize {
        for at in (0..self.bytes).step_by(PAGE) {
            // SAFETY: within the mapping.
            unsafe { self.address.add(at).read_volatile() };
        }
        self.bytes / PAGE
    }

    /// Bytes of all of them.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// `bytes` of the memory from `at` on, which are not touched by this.
    pub fn part(&self, at: usize, bytes: usize) -> &[u8] {
        assert!(at + bytes <= self.bytes, "past the end");
        // SAFETY: within the mapping, which nobody writes while this borrow lives.
        unsafe { std::slice::from_raw_parts(self.address.add(at), bytes) }
    }

    /// The memory as words that several processes may write.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping; it is page-aligned, and any bits are a valid word.
        unsafe { std::slice::from_raw_parts(self.address.cast(), self.bytes / 8) }
    }

    /// The memory as bytes, for direct I/O: it begins at a page's begin.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping, writable, and nobody else's while this borrow lives.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.bytes) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `map`.
        unsafe { libc::munmap(self.address.cast(), self.bytes) };
    }
}

/// Opens a file or device past the page cache.
pub fn open_direct(path: &Path) -> File {
    let mut options = File::options();
    options.read(true).write(true).custom_flags(libc::O_DIRECT);
    options.open(path).unwrap_or_else(|error| panic!("cannot open {}: {error}", path.display()))
}

/// Moves the calling process into the cgroups whose `cgroup.procs` these are.
pub fn enter(procs: &[String]) {
    for file in procs {
        fs::write(file, "0").unwrap_or_else(|error| panic!("cannot enter {file}: {error}"));
    }
}
