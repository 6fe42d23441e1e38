//! Which sleep of a job's tasks can be why a device was idle. Pure; the reasons are in
//! docs/decisions/0014-gpu-idle.md. A task that sleeps beside a busy device too (a helper) is no reason.

use std::collections::VecDeque;

use super::{tasks::Asleep, waits::Waits};

/// Stretches that are remembered, at one a second.
const REMEMBERED: usize = 60;

/// Who slept in stretches in which the device was busy.
#[derive(Clone, Debug, Default)]
pub struct Sleepers {
    beside_busy: VecDeque<BesideBusy>,
}

/// One of them, in millionths.
#[derive(Clone, Copy, Debug)]
struct BesideBusy {
    /// How much of it the device was busy.
    busy: u64,
    /// Tasks that slept, in poll or on sockets.
    network: u64,
    /// For anything else.
    elsewhere: u64,
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
    /// Learns who sleeps beside a device that was busy for `busy_ns` of `span_ns`.
    pub fn see_beside_busy(&mut self, asleep: &Asleep, busy_ns: u64, span_ns: u64) {
        let busy = u128::from(busy_ns.min(span_ns)) * 1_000_000 / u128::from(span_ns.max(1));
        let Asleep { network_ppm: network, elsewhere_ppm: elsewhere, .. } = *asleep;
        self.beside_busy.push_back(BesideBusy { busy: busy as u64, network, elsewhere });
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

    /// How many tasks always sleep; `None` where the device was never busy. Who waits for what idles it sleeps
    /// no longer than it is idle: one that sleeps longer, by half of the busy time, is a helper.
    fn steady(&self) -> Option<[u64; 2]> {
        let count = u128::try_from(self.beside_busy.len()).ok().filter(|count| *count > 0)?;
        let mean = |of: fn(&BesideBusy) -> u64| {
            self.beside_busy.iter().map(|beside| u128::from(of(beside))).sum::<u128>() / count
        };
        let half_busy = mean(|beside| beside.busy) / 2;
        let tasks = |ppm: u128| u64::try_from((ppm + half_busy) / 1_000_000).unwrap_or(u64::MAX);
        Some([tasks(mean(|beside| beside.network)), tasks(mean(|beside| beside.elsewhere))])
    }
}
