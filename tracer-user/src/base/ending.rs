//! The signals that end a command: caught, so that it can end as it should, with its terminal given back.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context, Result};

/// Signals that end it.
const ENDING: [i32; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// The number of the signal that came; 0: none did.
fn flag() -> &'static Arc<AtomicUsize> {
    static SIGNAL: OnceLock<Arc<AtomicUsize>> = OnceLock::new();
    SIGNAL.get_or_init(Arc::default)
}

/// From now on they are but noted.
///
/// # Errors
/// When they cannot be caught.
pub fn catch() -> Result<()> {
    for number in ENDING {
        signal_hook::flag::register_usize(number, Arc::clone(flag()), number as usize)
            .context("cannot catch the signals that end it")?;
    }
    Ok(())
}

/// The one that is to end the program, if one came.
pub fn signal() -> Option<u8> {
    u8::try_from(flag().load(Ordering::Relaxed)).ok().filter(|number| *number > 0)
}
