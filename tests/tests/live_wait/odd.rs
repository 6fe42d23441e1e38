//! Calls that are not what they seem.

use jobtrace_tests::agree::{MS, tried_again};

use crate::{COUNT, found};

/// A call of 32 bits has the number of another call of 64.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_call_of_32_bits_is_other() {
    crate::of_one_cause("compat", "sleep_other");
}

#[test]
fn a_signals_handler_waits_for_what_it_calls() {
    tried_again(|| {
        let found = found("handler", "", "");
        let mut agree = found.adds_up();
        found.is_all(&mut agree, &["sleep_timer", "sleep_poll"]);
        let inside = found.report.fact("handler_ns");
        let outside = found.report.fact("off_cpu_ns") - inside;
        for (cause, truth) in [("sleep_poll", inside), ("sleep_timer", outside)] {
            let waits = found.causes.of_cause(cause);
            agree.near(cause, waits.ns, truth..=truth, 2, 2 * MS);
            agree.between(&format!("{cause}_waits"), waits.count, COUNT - 2..=COUNT + 2);
        }
        agree.end();
    });
}
