//! Whether other tasks may interrupt programs.

use std::{
    marker::PhantomData,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// How many [`ByEvents`] there are in this process.
static BY_EVENTS: AtomicUsize = AtomicUsize::new(0);

/// Whether one of a typed tracepoint is run with preemption: since Linux 7.0. Nothing in the kernel's types says so.
pub fn interrupts_programs() -> bool {
    major(&rustix::system::uname().release().to_string_lossy()).is_some_and(|major| major >= 7)
}

/// While it lives programs are attached that take each call of a job by an event, and are left out by the kernel where
/// a reader of maps is off its CPU.
#[derive(Debug)]
pub struct ByEvents(());

impl ByEvents {
    /// `None` before Linux 7.0: the programs are those of typed tracepoints there, of which nothing hangs on readers.
    pub fn begin() -> Option<Self> {
        interrupts_programs().then(|| {
            BY_EVENTS.fetch_add(1, Relaxed);
            Self(())
        })
    }
}

impl Drop for ByEvents {
    fn drop(&mut self) {
        BY_EVENTS.fetch_sub(1, Relaxed);
    }
}

/// This thread before all tasks of ordinary priority while it lives: who is taken off a CPU within a command on a map takes
/// the programs of events with it, whosever task runs there then. For whoever reads or writes maps while there is one of
/// [`ByEvents`].
#[derive(Debug)]
pub struct Ahead {
    policy: libc::c_int,
    /// It is this thread's, and stays here.
    of_thread: PhantomData<*const ()>,
}

impl Ahead {
    /// `None` where nothing hangs on it, or this thread is before them already, or may not be (CAP_SYS_NICE).
    pub fn begin() -> Option<Self> {
        (BY_EVENTS.load(Relaxed) > 0).then(Self::of_thread).flatten()
    }

    fn of_thread() -> Option<Self> {
        // SAFETY: without pointers.
        let policy = unsafe { libc::sched_getscheduler(0) };
        let is_ordinary = [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE]
            .contains(&(policy & !libc::SCHED_RESET_ON_FORK));
        (is_ordinary && set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1))
            .then_some(Self { policy, of_thread: PhantomData })
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // Who may be ahead by RLIMIT_RTPRIO alone may not take the flag back, which makes children ordinary.
        let _ =
            set_policy(self.policy, 0) || set_policy(self.policy | libc::SCHED_RESET_ON_FORK, 0);
    }
}

/// Whether the kernel sets this thread's policy.
fn set_policy(policy: libc::c_int, priority: libc::c_int) -> bool {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameter is there as long as the call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) == 0 }
}

fn major(release: &str) -> Option<u32> {
    release.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use procfs::process::Process;

    use super::*;

    #[test]
    fn a_thread_is_ahead_for_a_while_where_it_may_be() {
        // SAFETY: without pointers.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        // capabilities(7)
        const CAP_SYS_NICE: u64 = 1 << 23;
        let held = Process::myself().unwrap().status().unwrap().capeff;
        let before = policy();
        let ahead = Ahead::of_thread();
        let is_ahead = policy() & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO;
        assert_eq!(ahead.is_some(), is_ahead);
        assert!(is_ahead || held & CAP_SYS_NICE == 0, "it may be");
        assert!(!is_ahead || Ahead::of_thread().is_none(), "it is already");
        drop(ahead);
        assert_eq!(policy(), before);
        assert!(Ahead::begin().is_none(), "nothing hangs on it");
        BY_EVENTS.fetch_add(1, Relaxed);
        let by_events = ByEvents(());
        let ahead = Ahead::begin();
        assert_eq!(ahead.is_some(), is_ahead);
        drop(by_events);
        drop(ahead);
        assert_eq!(policy(), before);
    }

    /// As one that was ahead by RLIMIT_RTPRIO alone: the kernel refuses it to take the flag back.
    #[test]
    fn who_may_not_be_ahead_any_more_becomes_ordinary() {
        use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
        let thread = std::thread::spawn(|| {
            let ahead = Ahead::of_thread();
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::SYS_NICE);
            set_capabilities(None, sets).unwrap();
            drop(ahead);
            // SAFETY: without pointers.
            let policy = unsafe { libc::sched_getscheduler(0) };
            assert_eq!(policy & !libc::SCHED_RESET_ON_FORK, libc::SCHED_OTHER);
        });
        thread.join().unwrap();
    }

    #[test]
    fn a_release_begins_with_its_major_number() {
        assert_eq!(major("6.18.44-fc-v595"), Some(6));
        assert_eq!(major("7.2.13+deb14-cloud-amd64"), Some(7));
        assert_eq!(major("none"), None);
    }
}
