//! Everything on for a minute, or as long as `cargo xtask soak --minutes` says.

use std::time::Duration;

/// Seconds, from `cargo xtask soak`.
const SECONDS: &str = "JOBTRACE_SOAK_SECONDS";

#[test]
fn all_that_was_written_is_what_the_kernel_counted() {
    let seconds = std::env::var(SECONDS).map_or(60, |text| text.parse().expect("a number"));
    jobtrace_tests::soak::run(Duration::from_secs(seconds)).unwrap();
}
