//! The signal state that jobtrace was started with, which the command is to find.

use std::{
    mem, ptr,
    sync::atomic::{AtomicBool, Ordering},
};

/// Whether jobtrace was started with SIGPIPE ignored. Rust ignores it itself before main begins.
static IGNORES_SIGPIPE: AtomicBool = AtomicBool::new(false);

extern "C" fn note_sigpipe() {
    IGNORES_SIGPIPE.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
}

// SAFETY: the C library calls what it finds in this section, functions like this one, before main.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = note_sigpipe;

/// Signal state that the command is to have, as jobtrace found it.
#[derive(Clone, Copy)]
pub(super) struct Inherited {
    pub(super) mask: libc::sigset_t,
    pub(super) ignores_sigpipe: bool,
    pub(super) ignores_sigchld: bool,
    pub(super) ignores_sigxfsz: bool,
}

impl Inherited {
    /// Those of `signals` that it lets through.
    pub(super) fn unblocked(&self, mut signals: libc::sigset_t) -> libc::sigset_t {
        for signal in 1..=libc::SIGRTMAX() {
            // SAFETY: both sets are initialised; a number that is no signal is refused.
            unsafe {
                if libc::sigismember(&self.mask, signal) == 1 {
                    libc::sigdelset(&mut signals, signal);
                }
            }
        }
        signals
    }

    /// Puts the state back, in the forked child; only async-signal-safe calls.
    pub(super) fn restore(&self) {
        let sigpipe = if self.ignores_sigpipe { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: all calls are async-signal-safe.
        unsafe {
            libc::signal(libc::SIGPIPE, sigpipe);
            if self.ignores_sigchld {
                libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            }
            if !self.ignores_sigxfsz {
                libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
            }
        }
        set_mask(&self.mask);
    }
}

/// Whether SIGPIPE was ignored when jobtrace was started.
pub(super) fn was_sigpipe_ignored() -> bool {
    IGNORES_SIGPIPE.load(Ordering::Relaxed)
}

/// Whether this process ignores `signal`.
pub(super) fn is_ignored(signal: i32) -> bool {
    // SAFETY: the structure is plain data, for which zero is valid; nothing is changed.
    unsafe {
        let mut now: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, ptr::null(), &mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}

/// Blocks the signals of `mask`, and no other.
pub(super) fn set_mask(mask: &libc::sigset_t) {
    // SAFETY: the mask came from the kernel; the old one is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut()) };
}
