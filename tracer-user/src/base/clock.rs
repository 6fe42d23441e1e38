//! The two clocks. Read at the edges only: between drain and sink time arrives as an argument.

use std::{
    fs,
    sync::LazyLock,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::time::{ClockId, clock_gettime};

/// By how much CLOCK_MONOTONIC is ahead here of what it is outside of all time namespaces (time_namespaces(7)).
static AHEAD_NS: LazyLock<i64> = LazyLock::new(|| {
    fs::read_to_string("/proc/self/timens_offsets").map_or(0, |text| ahead_ns(&text).unwrap_or(0))
});

/// CLOCK_MONOTONIC in nanoseconds, as the kernel and its programs have it, in whichever time namespace: what spans are
/// differences of. Async-signal-safe from its second call on.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    ns.saturating_add_signed(AHEAD_NS.saturating_neg())
}

/// The offset of CLOCK_MONOTONIC in `offsets`, the text of /proc/PID/timens_offsets: a clock in each line, its seconds and
/// nanoseconds.
fn ahead_ns(offsets: &str) -> Option<i64> {
    let line = offsets.lines().find_map(|line| line.strip_prefix("monotonic"))?;
    let mut numbers = line.split_whitespace().map(str::parse::<i64>);
    let [seconds, ns] = [numbers.next()?.ok()?, numbers.next()?.ok()?];
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_of_a_time_namespace_is_read() {
        let of = |line: &str| ahead_ns(&format!("{line}\nboottime            7         0\n"));
        assert_eq!(of("monotonic           0         0"), Some(0));
        assert_eq!(of("monotonic      100000         5"), Some(100_000_000_000_005));
        assert_eq!(of("monotonic          -2 500000000"), Some(-1_500_000_000));
        for strange in ["", "monotonic", "monotonic x 0", "monotonic 9223372036854775807 0"] {
            assert_eq!(of(strange), None, "{strange:?}");
        }
    }
}
