//! Waiting until so much was seen that it is to be taken before the next reading.

use std::os::fd::{BorrowedFd, OwnedFd};

use tokio::io::{Interest, unix::AsyncFd};

use super::Census;

/// The descriptor that tells it, for an event loop; none where nobody watches.
pub struct Wake(Option<AsyncFd<OwnedFd>>);

impl Wake {
    /// That of `census`.
    pub fn of(census: Option<&Census>) -> Self {
        Self(census.and_then(|census| {
            // SAFETY: the ring's, which is open while `census` is borrowed.
            let ring = unsafe { BorrowedFd::borrow_raw(census.ring_fd()) };
            let ring = ring.try_clone_to_owned().ok()?;
            // SAFETY: a descriptor that nothing else has, and that is registered nowhere else.
            unsafe { AsyncFd::register_with_interest(ring, Interest::READABLE) }.ok()
        }))
    }

    /// Waits for it; for ever where nothing tells.
    pub async fn much(&self) {
        match &self.0 {
            Some(ring) if ring.readable().await.map(|mut ready| ready.clear_ready()).is_ok() => {}
            _ => std::future::pending().await,
        }
    }
}
