//! The two clocks. Read at the edges only: between drain and sink time arrives as an argument.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC in nanoseconds: what spans are differences of. Async-signal-safe.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// What [`wall_ns`] was when CLOCK_MONOTONIC was `monotonic_at_ns`, by the clock as it is set now.
pub fn wall_at(monotonic_at_ns: u64) -> u64 {
    wall_ns().saturating_sub(monotonic_ns().saturating_sub(monotonic_at_ns))
}

/// What [`wall_ns`] was when CLOCK_MONOTONIC was zero, by the clock as it is set now.
pub fn boot_wall_ns() -> u64 {
    wall_at(0)
}

/// Nanoseconds since the Unix epoch: what points are stamped with.
pub fn wall_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}
