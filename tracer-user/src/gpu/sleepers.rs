//! Which sleep of a job's tasks can be why a device was idle. Pure; the reasons are in
//! docs/decisions/0014-gpu-idle.md. A task that sleeps beside a busy device too (a helper) is no reason.

use std::collections::VecDeque;

use super::{tasks::Asleep, waits::Waits};

/// Stretches that are remembered, at one a second.
const REMEMBERED: usize = 60;
/// A task that is awake for no more than this in a second is asleep all the time, in millionths.
const AWAKE_PPM: u64 = 20_000;

/// Tasks that slept while the device was busy: in poll or on sockets, and for anything else, in millionths.
#[derive(Clone, Debug, Default)]
pub struct Sleepers {
    beside_busy: VecDeque<[u64; 2]>,
}

/// Sleep that may be a reason: in poll or on sockets, and for anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Reasons {
    /// For the network.
    pub network: Waits,
    /// For anything else.
    pub elsewhere: Waits,
}

impl Sleepers {
    /// Learns who sleeps beside a busy device.
    pub fn see_beside_busy(&mut self, asleep: &Asleep) {
        self.beside_busy.push_back([asleep.network_ppm, asleep.elsewhere_ppm]);
        if self.beside_busy.len() > REMEMBERED {
            self.beside_busy.pop_front();
        }
    }

    /// What of the sleep in a stretch of `span_ns` may be a reason, with `spare_ns` left out: of that much it
    /// is known that somebody waited for the device itself.
    pub fn reasons(&self, asleep: &Asleep, span_ns: u64, spare_ns: u64) -> Reasons {
        let Some([network, elsewhere]) = self.steady() else {
            // Nobody knows yet who always sleeps. Drivers' own helpers do so in poll, not on sockets.
            return Reasons { network: asleep.sockets, elsewhere: asleep.elsewhere };
        };
        let within = |waits: Waits, tasks: u64, spare_ns: u64| {
            let left_out = tasks.saturating_mul(span_ns).saturating_add(spare_ns);
            waits.within_ns.saturating_sub(left_out)
        };
        let before = |waits: Waits, tasks: u64| {
            waits.before_ns.saturating_sub(tasks.saturating_mul(waits.reach_ns))
        };
        let of = |waits: Waits, tasks: u64, spare_ns: u64| Waits {
            within_ns: within(waits, tasks, spare_ns),
            before_ns: before(waits, tasks),
            reach_ns: waits.reach_ns,
        };
        Reasons {
            network: of(asleep.poll.and(asleep.sockets), network, spare_ns),
            elsewhere: of(asleep.elsewhere, elsewhere, 0),
        }
    }

    /// How many tasks always sleep; `None` where the device was never busy.
    fn steady(&self) -> Option<[u64; 2]> {
        let count = u128::try_from(self.beside_busy.len()).ok().filter(|count| *count > 0)?;
        let mean = |of: usize| {
            let sum: u128 = self.beside_busy.iter().map(|ppm| u128::from(ppm[of])).sum();
            u64::try_from((sum / count + u128::from(AWAKE_PPM)) / 1_000_000).unwrap_or(u64::MAX)
        };
        Some([mean(0), mean(1)])
    }
}
