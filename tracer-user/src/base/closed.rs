//! Whether standard output was closed when this process began. Owns the one look at it; refuses to judge
//! who may need it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Rust's runtime opens /dev/null in place of a closed standard stream before `main`, in the way that
/// others open it on purpose: later nobody can tell. The C library calls this earlier.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFD reads a flag of a number that need not be open, and takes no pointer.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags == -1, Relaxed);
}

/// Whether what is written to standard output is lost.
pub fn is_standard_output_closed() -> bool {
    WAS_CLOSED.load(Relaxed)
}
