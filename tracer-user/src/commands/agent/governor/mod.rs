//! Keeps what the probes cost below its limit: estimates it at each interval, sheds the costliest family
//! when it stays above, and tries it again later. Pure: time, counts and limit arrive as arguments, and
//! the same ones give the same actions. Attaching, detaching and telling is the caller's.
//!
//! What shedding `sched` means: most of `job_sched` and the counts of faults are unknown from then on,
//! the fault families, which live on its records, with them; what is left of a job are its cgroup's own
//! files and the families that still run. So it goes last.
//! See docs/decisions/0011-overhead-governor.md.

use std::fmt;

use crate::probes::{FAMILIES, Family};

/// Limits and patience.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Share of the online CPUs' time that the probes may take.
    pub max_ratio: f64,
    /// This many readings in a row above the limit make the governor shed; it waits as many after
    /// anything it did before it tries a family again.
    pub patience: u32,
    /// How long a family stays shed the first time.
    pub first_back_off_ns: u64,
    /// How long at most: each time doubles it.
    pub longest_back_off_ns: u64,
}

impl Limits {
    /// The usual patience: three intervals, a minute, an hour.
    #[must_use]
    pub fn with_limit(max_ratio: f64) -> Self {
        Self {
            max_ratio,
            patience: 3,
            first_back_off_ns: 60_000_000_000,
            longest_back_off_ns: 3_600_000_000_000,
        }
    }
}

/// Events from which on a measured cost of one event is believed.
const ENOUGH_EVENTS: u64 = 1000;

/// What a family did in the interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Events that ran its probes, [`FamilyRow::event`](crate::probes::FamilyRow::event).
    pub events: u64,
    /// Run time of its programs where the kernel measured it; it then counts instead of the estimate,
    /// and the estimates after it are made of it.
    pub bpf_ns: Option<u64>,
}

/// One interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Its end; never runs backwards.
    pub now_ns: u64,
    /// Its length.
    pub span_ns: u64,
    /// CPUs online.
    pub cpus: u32,
    /// By [`Family`]; `None`: not known. Those of shed families do not count.
    pub families: [Option<Activity>; FAMILIES],
}

/// What to do with a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Detach its probes.
    Shed(Family),
    /// Attach them again.
    Restore(Family),
}

/// What the governor found.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Share of the CPUs' time that the attached families took; `None` where the interval had no length.
    pub ratio: Option<f64>,
    /// The same by family; `None` where it is shed or unknown.
    pub ratios: [Option<f64>; FAMILIES],
    /// Whether all of it was measured by the kernel.
    pub is_measured: bool,
    /// What to do now.
    pub action: Option<Action>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Since when; zero: from the start.
    Attached(u64),
    /// Until when at least.
    Shed(u64),
}

/// The state between readings.
#[derive(Clone, Debug)]
pub struct Governor {
    limits: Limits,
    states: [State; FAMILIES],
    /// How long each is shed the next time; zero before the first.
    back_offs_ns: [u64; FAMILIES],
    /// Nanoseconds per event as the kernel measured them here.
    event_ns: [Option<f64>; FAMILIES],
    above: u32,
    since_action: u32,
}

impl Governor {
    /// A governor of probes that are all attached.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            states: [State::Attached(0); FAMILIES],
            back_offs_ns: [0; FAMILIES],
            event_ns: [None; FAMILIES],
            above: 0,
            since_action: 0,
        }
    }

    /// Takes over other limits, as SIGHUP brings them.
    pub fn set(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Nanoseconds per event of `family` as the kernel measured them on this node, smoothed; `None` where
    /// it has not yet.
    #[must_use]
    pub fn measured_event_ns(&self, family: Family) -> Option<f64> {
        self.event_ns[family as usize]
    }

    /// Whether the probes of `family` are to be attached.
    #[must_use]
    pub fn is_running(&self, family: Family) -> bool {
        !self.is_shed(family) && family.row().needs.is_none_or(|needed| !self.is_shed(needed))
    }

    /// Whether `family` is shed.
    #[must_use]
    pub fn is_shed(&self, family: Family) -> bool {
        matches!(self.states[family as usize], State::Shed(_))
    }

    /// How long `family` stays shed at least, at `now_ns`; `None` where it is attached.
    #[must_use]
    pub fn shed_for_ns(&self, family: Family, now_ns: u64) -> Option<u64> {
        match self.states[family as usize] {
            State::Shed(until_ns) => Some(until_ns.saturating_sub(now_ns)),
            State::Attached(_) => None,
        }
    }

    /// Judges an interval. The action is taken as done.
    pub fn judge(&mut self, reading: &Reading) -> Verdict {
        let time_ns = reading.span_ns as f64 * f64::from(reading.cpus);
        if time_ns == 0.0 {
            return Verdict {
                ratio: None,
                ratios: [None; FAMILIES],
                is_measured: false,
                action: None,
            };
        }
        let running = Family::ALL
            .map(|family| reading.families[family as usize].filter(|_| self.is_running(family)));
        let ratios = Family::ALL.map(|family| {
            let activity = running[family as usize]?;
            self.learn(family, activity);
            Some(self.cost_ns(family, activity) / time_ns)
        });
        let is_measured = running.iter().flatten().all(|activity| activity.bpf_ns.is_some());
        let ratio: f64 = ratios.iter().flatten().sum();
        let is_above = ratio > self.limits.max_ratio;
        self.above = if is_above { self.above.saturating_add(1) } else { 0 };
        self.since_action = self.since_action.saturating_add(1);
        let action = if is_above {
            self.costliest(&ratios, ratio).map(Action::Shed)
        } else {
            self.due(reading.now_ns).map(Action::Restore)
        };
        if let Some(action) = action {
            self.take(action, reading.now_ns);
        }
        Verdict { ratio: Some(ratio), ratios, is_measured, action }
    }

    fn learn(&mut self, family: Family, activity: Activity) {
        let Some(bpf_ns) = activity.bpf_ns.filter(|_| activity.events >= ENOUGH_EVENTS) else {
            return;
        };
        let now = bpf_ns as f64 / activity.events as f64;
        let known = &mut self.event_ns[family as usize];
        *known = Some(known.map_or(now, |before| f64::midpoint(before, now)));
    }

    fn cost_ns(&self, family: Family, activity: Activity) -> f64 {
        let event_ns = self.event_ns[family as usize].unwrap_or(family.row().event_ns as f64);
        activity.bpf_ns.map_or_else(|| activity.events as f64 * event_ns, |ns| ns as f64)
    }

    /// The family to shed. One that costs less than a tenth of the excess stays: all of them together
    /// would not bring it below, and their values would be lost for nothing.
    fn costliest(&self, ratios: &[Option<f64>; FAMILIES], ratio: f64) -> Option<Family> {
        if self.above < self.limits.patience {
            return None;
        }
        let worth = (ratio - self.limits.max_ratio) / 10.0;
        let candidates = Family::ALL.into_iter().filter_map(|family| {
            ratios[family as usize].filter(|_| family.row().sheddable)?;
            // Those that are not shed by themselves count for the one that takes them with it.
            let taken = family
                .with_dependents()
                .filter(|&other| other == family || !other.row().sheddable)
                .filter_map(|other| ratios[other as usize]);
            Some((family, taken.sum::<f64>())).filter(|(_, own)| *own >= worth)
        });
        // The scheduler's comes first in the order, so any other one takes its place.
        candidates
            .reduce(|a, b| if a.0 == Family::Sched || b.1 > a.1 { b } else { a })
            .map(|(family, _)| family)
    }

    /// The family whose time is up longest, once things are quiet.
    fn due(&self, now_ns: u64) -> Option<Family> {
        if self.since_action < self.limits.patience {
            return None;
        }
        let shed =
            Family::ALL.into_iter().filter_map(|family| match self.states[family as usize] {
                State::Shed(until_ns) if until_ns <= now_ns => Some((until_ns, family)),
                _ => None,
            });
        // What it lives on comes first.
        let shed = shed
            .filter(|(_, family)| family.row().needs.is_none_or(|needed| !self.is_shed(needed)));
        shed.min().map(|(_, family)| family)
    }

    fn take(&mut self, action: Action, now_ns: u64) {
        let limits = self.limits;
        match action {
            Action::Shed(family) => {
                let own = family as usize;
                let back_off = &mut self.back_offs_ns[own];
                let stayed_ns = match self.states[own] {
                    State::Attached(since_ns) => now_ns.saturating_sub(since_ns),
                    State::Shed(_) => 0,
                };
                // Whoever behaved for as long as the longest punishment begins anew.
                *back_off = match *back_off {
                    0 => limits.first_back_off_ns,
                    _ if stayed_ns >= limits.longest_back_off_ns => limits.first_back_off_ns,
                    last => last.saturating_mul(2).min(limits.longest_back_off_ns),
                };
                self.states[own] = State::Shed(now_ns.saturating_add(*back_off));
            }
            Action::Restore(family) => self.states[family as usize] = State::Attached(now_ns),
        }
        self.above = 0;
        self.since_action = 0;
    }
}

impl fmt::Display for Action {
    /// For the log: what happens and what it means.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shed(family) => {
                let gives: Vec<_> =
                    family.with_dependents().map(|family| family.row().gives).collect();
                let (name, gives) = (family.row().name, gives.join(", "));
                write!(f, "{name} probes detached, unknown for now: {gives}")
            }
            Self::Restore(family) => write!(f, "{} probes attached again", family.row().name),
        }
    }
}
