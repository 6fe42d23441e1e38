//! What the agent itself may take, each goal with the rows of the footprints that tell whether it is met. Pure.

use super::footprint::{Load, Row, Scene, Taken};
use super::goals::{Goal, goal};
use super::jobs::Shape;
use super::tracers::Tracer;
use xtask::markdown::mib;

/// Of one core: 100 jobs, by what they do, how their cgroups lie, and the interval.
const MOST_RATIO: [(Load, Shape, u64, f64); 7] = [
    (Load::Calm, Shape::Flat, 1, 0.003),
    (Load::Calm, Shape::Flat, 10, 0.000_5),
    (Load::Calm, Shape::Nested, 1, 0.006),
    (Load::Calm, Shape::Unified, 1, 0.006),
    (Load::Asleep, Shape::Flat, 1, 0.003),
    (Load::Asleep, Shape::Flat, 10, 0.000_5),
    (Load::Asleep, Shape::Nested, 1, 0.006),
];
/// 1,000 nested jobs every 10 s.
const MOST_RATIO_OF_MANY: f64 = 0.01;
/// More with 1,000 programs executed a second.
const MOST_RATIO_OF_EXECS: f64 = 0.005;
/// Resident with 100 jobs, and while it starts.
const MOST_MIB: f64 = 15.0;
const MOST_MIB_AT_START: f64 = 22.0;
/// Resident for each job more.
const MOST_KIB_A_JOB: f64 = 20.0;
/// A reading of 256 slots: the shortest, for the median of a busy machine is the others'.
const MOST_DRAIN_MS: f64 = 0.5;

/// All of them, by what `rows` say of the agent.
pub fn check(rows: &[Row]) -> Vec<Goal> {
    let found = |is_wanted: &dyn Fn(&Scene) -> bool| {
        let mut of_agent = rows.iter().filter(|row| row.tracer == Tracer::Agent.id());
        of_agent.find(|row| is_wanted(&row.scene))?.taken.as_ref().ok()
    };
    let of = |jobs, shape, load, interval_s| {
        found(&|scene| {
            (scene.jobs, scene.shape, scene.load, scene.interval_s)
                == (jobs, shape, load, interval_s)
        })
    };
    let calm = |jobs, shape, interval_s| of(jobs, shape, Load::Calm, interval_s);
    let mut goals = Vec::new();
    for (load, shape, interval_s, most) in MOST_RATIO {
        let taken = of(100, shape, load, interval_s);
        let (shape, they) = (shape.name(), load.name());
        let what = format!(
            "the agent takes of a core with 100 jobs ({shape}) that {they} at {interval_s} s"
        );
        goals.push(at_most(what, taken.map(|taken| taken.core_ratio * 100.0), most * 100.0, "%"));
    }
    let many = calm(1000, Shape::Nested, 10);
    let what = "the agent takes of a core with 1,000 nested jobs at 10 s".to_owned();
    let ratio = many.map(|taken| taken.core_ratio * 100.0);
    goals.push(at_most(what, ratio, MOST_RATIO_OF_MANY * 100.0, "%"));
    let usual = calm(100, Shape::Flat, 10);
    let more = usual.zip(of(100, Shape::Flat, Load::Executes, 10)).and_then(|(usual, taken)| {
        let execs_per_s = taken.said.as_ref()?.execs_per_s;
        Some((taken.core_ratio - usual.core_ratio) * 100.0 * 1000.0 / execs_per_s.max(1.0))
    });
    let what = "1,000 programs executed a second take of a core more".to_owned();
    goals.push(at_most(what, more, MOST_RATIO_OF_EXECS * 100.0, "%"));
    let resident = usual.map(|taken| mib(taken.rss_bytes));
    goals.push(at_most("with 100 jobs it is resident with".into(), resident, MOST_MIB, "MiB"));
    let peak = usual.map(|taken| mib(taken.peak_rss_bytes));
    goals.push(at_most("at its start it takes".into(), peak, MOST_MIB_AT_START, "MiB"));
    let growth = usual.zip(many).map(|(few, many): (&Taken, &Taken)| {
        many.rss_bytes.saturating_sub(few.rss_bytes) as f64 / 1024.0 / 900.0
    });
    goals.push(at_most("each job more takes".into(), growth, MOST_KIB_A_JOB, "KiB"));
    let said = |taken: Option<&'_ Taken>| taken?.said.clone();
    let drain = said(calm(255, Shape::Flat, 1)).map(|said| said.least_drain_ns as f64 / 1e6);
    goals.push(at_most("a reading of 256 slots takes".into(), drain, MOST_DRAIN_MS, "ms"));
    let late = said(of(100, Shape::Flat, Load::Busy, 1)).map(|said| said.late as f64);
    goals.push(at_most("beside busy CPUs intervals are late:".into(), late, 0.0, "times"));
    goals
}

fn at_most(what: String, found: Option<f64>, most: f64, unit: &str) -> Goal {
    let number =
        |value: f64| format!("{:.3}", value).trim_end_matches('0').trim_end_matches('.').to_owned();
    let text = format!("{what} at most {} {unit}", number(most));
    let shown = found.map_or(String::new(), |found| format!("{} {unit}", number(found)));
    goal(found.map(|found| found <= most), text, &shown)
}

#[cfg(test)]
mod tests {
    use super::super::footprint::Said;
    use super::super::goals::Verdict;
    use super::*;
    use std::time::Duration;

    fn row(scene: Scene, core_ratio: f64, rss_mib: u64) -> Row {
        let said = Said {
            drain_ns: 900_000,
            least_drain_ns: 400_000,
            execs_per_s: 500.0,
            exec_ns: None,
            late: 1,
        };
        let taken = Taken {
            span: Duration::from_secs(60),
            core_ratio,
            rss_bytes: rss_mib << 20,
            peak_rss_bytes: 21 << 20,
            map_bytes: 0,
            said: Some(said),
        };
        Row { tracer: Tracer::Agent.id(), scene, taken: Ok(taken) }
    }

    #[test]
    fn each_goal_is_judged_by_its_own_scene() {
        let scene = |jobs, shape, load, interval_s| Scene::of(jobs, shape, load, interval_s, 60);
        let rows = [
            row(scene(100, Shape::Flat, Load::Calm, 10), 0.000_4, 14),
            row(scene(100, Shape::Flat, Load::Calm, 1), 0.004, 14),
            row(scene(100, Shape::Flat, Load::Asleep, 1), 0.003, 14),
            row(scene(100, Shape::Nested, Load::Calm, 1), 0.005, 14),
            row(scene(255, Shape::Flat, Load::Calm, 1), 0.009, 17),
            row(scene(100, Shape::Flat, Load::Executes, 10), 0.002_4, 14),
            row(scene(100, Shape::Flat, Load::Busy, 1), 0.004, 14),
            row(scene(1000, Shape::Nested, Load::Calm, 10), 0.009, 40),
        ];
        let goals = check(&rows);
        let told = |begin: &str| {
            let goal = goals.iter().find(|goal| goal.text.contains(begin)).expect(begin);
            (goal.verdict, goal.found.as_str())
        };
        assert_eq!(told("(flat) that wake at 10 s at most 0.05 %"), (Verdict::Met, "0.04 %"));
        assert_eq!(told("(flat) that wake at 1 s at most 0.3 %"), (Verdict::NotMet, "0.4 %"));
        assert_eq!(told("(nested) that wake"), (Verdict::Met, "0.5 %"));
        assert_eq!(told("(flat) that sleep at 1 s"), (Verdict::Met, "0.3 %"));
        assert_eq!(told("(nested, v2 alone)"), (Verdict::Open, "not measured"));
        assert_eq!(told("1,000 nested jobs"), (Verdict::Met, "0.9 %"));
        assert_eq!(told("programs executed"), (Verdict::Met, "0.4 %"), "0.2 % with 500");
        assert_eq!(told("resident"), (Verdict::Met, "14 MiB"));
        assert_eq!(told("its start"), (Verdict::Met, "21 MiB"));
        assert_eq!(told("each job"), (Verdict::NotMet, "29.582 KiB"));
        assert_eq!(told("256 slots"), (Verdict::Met, "0.4 ms"));
        assert_eq!(told("late"), (Verdict::NotMet, "1 times"));
        assert!(check(&[]).iter().all(|goal| goal.verdict == Verdict::Open));
    }
}
