//! The overhead governor against tables and random loads.

use jobtrace::{
    commands::agent::governor::{Action, Activity, Governor, Limits, Reading, Verdict},
    probes::{FAMILIES, Family},
};
use proptest::prelude::*;

const S: u64 = 1_000_000_000;
const STEP_S: u64 = 10;

/// A node of one CPU whose families cost fixed shares of its time while they are attached.
struct Node {
    governor: Governor,
    ratios: [f64; FAMILIES],
    now_s: u64,
}

impl Node {
    fn new(max_ratio: f64, ratios: [f64; FAMILIES]) -> Self {
        Self { governor: Governor::new(Limits::with_limit(max_ratio)), ratios, now_s: 0 }
    }

    fn step(&mut self) -> Verdict {
        self.now_s += STEP_S;
        let families = self.ratios.map(|ratio| {
            let bpf_ns = Some((ratio * (STEP_S * S) as f64) as u64);
            Some(Activity { events: 0, bpf_ns })
        });
        let now_ns = self.now_s * S;
        self.governor.judge(&Reading { now_ns, span_ns: STEP_S * S, cpus: 1, families })
    }

    fn actions(&mut self, until_s: u64) -> Vec<(u64, Action)> {
        let mut found = Vec::new();
        while self.now_s < until_s {
            found.extend(self.step().action.map(|action| (self.now_s, action)));
        }
        found
    }
}

#[test]
fn the_dearest_goes_first_and_the_scheduler_last() {
    // sched, major, full, block, net, census, life cycle; limit 1 %
    for (ratios, shed) in [
        ([0.004, 0.001, 0.003, 0.001, 0.0, 0.0, 0.0], vec![]),
        ([0.005, 0.0, 0.006, 0.004, 0.0, 0.0, 0.0], vec![Family::FullFault]),
        ([0.005, 0.0, 0.008, 0.009, 0.0, 0.0, 0.0], vec![Family::Block, Family::FullFault]),
        (
            [0.020, 0.001, 0.006, 0.004, 0.0, 0.0, 0.0],
            vec![Family::FullFault, Family::Block, Family::Sched],
        ),
        ([0.005, 0.0, 0.004, 0.004, 0.012, 0.0, 0.0], vec![Family::Net, Family::FullFault]),
        // Not worth it: a thousandth of what is too much.
        ([0.030, 0.0, 0.000_02, 0.000_02, 0.0, 0.0, 0.0], vec![Family::Sched]),
        // What keeps the slots right stays, whatever it costs.
        ([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5], vec![]),
    ] {
        let mut node = Node::new(0.01, ratios);
        let found: Vec<_> = node
            .actions(150)
            .into_iter()
            .filter_map(|(_, action)| match action {
                Action::Shed(family) => Some(family),
                Action::Restore(_) => None,
            })
            .take(shed.len().max(1))
            .collect();
        assert_eq!(found, shed, "{ratios:?}");
    }
}

#[test]
fn three_in_a_row_and_then_back_off_that_doubles_up_to_an_hour() {
    let mut node = Node::new(0.01, [0.002, 0.0, 0.05, 0.0, 0.0, 0.0, 0.0]);
    let actions = node.actions(6 * 3600);
    assert_eq!(actions[0], (30, Action::Shed(Family::FullFault)));
    let back_offs: Vec<u64> = actions.chunks_exact(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert_eq!(back_offs[..8], [60, 120, 240, 480, 960, 1920, 3600, 3600]);
    for pair in actions[1..].chunks_exact(2) {
        assert_eq!(pair[1].0 - pair[0].0, 30, "three intervals to see that it is still too much");
    }
}

#[test]
fn a_short_peak_sheds_nothing() {
    let mut node = Node::new(0.01, [0.0; FAMILIES]);
    for step in 0..60 {
        node.ratios[Family::Block as usize] = if step % 3 == 0 { 0.0 } else { 0.5 };
        assert_eq!(node.step().action, None);
    }
}

#[test]
fn who_behaved_for_an_hour_begins_with_a_minute_again() {
    let mut node = Node::new(0.01, [0.0, 0.0, 0.0, 0.05, 0.0, 0.0, 0.0]);
    node.actions(1000);
    node.ratios[Family::Block as usize] = 0.001;
    let calm = node.actions(3 * 3600);
    assert!(calm.len() == 1 && !node.governor.is_shed(Family::Block), "{calm:?}");
    node.ratios[Family::Block as usize] = 0.05;
    let actions = node.actions(3 * 3600 + 200);
    assert_eq!(actions[1].0 - actions[0].0, 60, "{actions:?}");
}

#[test]
fn without_statistics_events_are_multiplied_and_unknown_ones_left_out() {
    let mut governor = Governor::new(Limits::with_limit(0.01));
    let mut families = [None; FAMILIES];
    families[Family::Sched as usize] = Some(Activity { events: 1_000_000, bpf_ns: None });
    let reading = Reading { now_ns: S, span_ns: S, cpus: 4, families };
    let verdict = governor.judge(&reading);
    assert_eq!(verdict.ratio, Some(1e6 * 160.0 / 4e9));
    assert_eq!(verdict.ratios[Family::Block as usize], None);
    assert!(!verdict.is_measured);
    for broken in [Reading { span_ns: 0, ..reading }, Reading { cpus: 0, ..reading }] {
        assert_eq!(governor.judge(&broken).ratio, None);
    }
}

#[test]
fn what_was_measured_here_stands_for_the_figures_from_elsewhere() {
    let mut governor = Governor::new(Limits::with_limit(1.0));
    let mut judge = |events, bpf_ns| {
        let mut families = [None; FAMILIES];
        families[Family::Sched as usize] = Some(Activity { events, bpf_ns });
        let verdict = governor.judge(&Reading { now_ns: S, span_ns: S, cpus: 1, families });
        ((verdict.ratio.unwrap() * 1e9).round(), verdict.is_measured)
    };
    assert_eq!(judge(10_000, None), (1_600_000.0, false));
    assert_eq!(judge(999, Some(999_000)), (999_000.0, true), "too few to learn from");
    assert_eq!(judge(10_000, None), (1_600_000.0, false));
    assert_eq!(judge(10_000, Some(900_000)), (900_000.0, true));
    assert_eq!(judge(10_000, None), (900_000.0, false), "90 ns each");
    assert_eq!(judge(10_000, Some(700_000)), (700_000.0, true));
    assert_eq!(judge(10_000, None), (800_000.0, false), "smoothed");
}

#[test]
fn who_lives_on_the_switch_hook_goes_and_comes_with_it() {
    // Nothing but major faults: their probe cannot be shed without the switch hook.
    let mut node = Node::new(0.01, [0.001, 0.05, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(node.actions(30), [(30, Action::Shed(Family::Sched))]);
    assert!(!node.governor.is_shed(Family::MajorFault));
    assert!(!node.governor.is_running(Family::MajorFault));
    assert_eq!(node.step().ratio, Some(0.0));
    // Both are shed, the one that needs the other earlier: it waits for that other.
    let mut node = Node::new(0.01, [0.02, 0.0, 0.05, 0.0, 0.0, 0.0, 0.0]);
    let restored: Vec<_> = node
        .actions(200)
        .into_iter()
        .filter_map(|(_, action)| match action {
            Action::Restore(family) => Some(family),
            Action::Shed(_) => None,
        })
        .collect();
    assert_eq!(restored.first(), Some(&Family::Sched), "{restored:?}");
}

#[test]
fn other_settings_count_at_once() {
    let mut node = Node::new(0.01, [0.0, 0.0, 0.0, 0.05, 0.0, 0.0, 0.0]);
    node.governor.set(Limits { patience: 1, first_back_off_ns: S, ..Limits::with_limit(0.01) });
    assert_eq!(node.step().action, Some(Action::Shed(Family::Block)));
    assert_eq!(node.step().action, Some(Action::Restore(Family::Block)));
    node.governor.set(Limits::with_limit(0.06));
    assert_eq!(node.actions(1000), []);
}

fn ratios() -> impl Strategy<Value = [f64; FAMILIES]> {
    prop::array::uniform(prop_oneof![Just(0.0), 0.0..0.02, 0.0..0.3])
}

proptest! {
    /// Whatever the load does, a family is shed for its back-off at least, each back-off is at least a
    /// minute, and shedding takes three intervals.
    #[test]
    fn never_faster_than_the_back_off(
        loads in prop::collection::vec((ratios(), 1..40_u64), 1..60)
    ) {
        let mut node = Node::new(0.01, [0.0; FAMILIES]);
        let mut changed_s = [None::<u64>; FAMILIES];
        let mut last_s = 0;
        for (ratios, steps) in loads {
            node.ratios = ratios;
            for (at_s, action) in node.actions(node.now_s + steps * STEP_S) {
                let (Action::Shed(family) | Action::Restore(family)) = action;
                let since = changed_s[family as usize].map(|since| at_s - since);
                match action {
                    Action::Restore(_) => prop_assert!(since.is_some_and(|s| s >= 60), "{since:?}"),
                    Action::Shed(_) => prop_assert!(since.is_none_or(|s| s >= 30), "{since:?}"),
                }
                prop_assert!(last_s == 0 || at_s - last_s >= 30, "two actions within three intervals");
                changed_s[family as usize] = Some(at_s);
                last_s = at_s;
            }
        }
    }

    /// With constant costs the ratio is below the limit once everything worth it is shed, unless what
    /// may not be shed is above it alone.
    #[test]
    fn constant_costs_end_below_the_limit(mut ratios in ratios()) {
        ratios[Family::LifeCycle as usize] *= 0.03;
        let mut node = Node::new(0.01, ratios);
        // Five families, three intervals each, and one to look: before the first is tried again the
        // ratio was below once.
        let lowest = (0..16).map(|_| node.step().ratio.unwrap()).fold(f64::INFINITY, f64::min);
        prop_assert!(lowest <= 0.01, "{lowest}");
    }

    /// The same readings give the same actions.
    #[test]
    fn no_chance_in_it(ratios in ratios()) {
        let run = || Node::new(0.01, ratios).actions(4000);
        prop_assert_eq!(run(), run());
    }
}
