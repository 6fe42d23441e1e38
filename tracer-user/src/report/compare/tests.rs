//! Known curves in, known numbers and sentences out; in whatever order.

use proptest::prelude::*;

use super::*;
use crate::view::file_wait::Part;

mod notes;

const S: f64 = 1e9;

/// A run of work that takes 100 s on one core, 10 % of it serial, `run` of its size.
fn run(cores: f64, run: u64) -> Measured {
    let seconds = 100.0 * (0.1 + 0.9 / cores);
    timed(cores, run, seconds)
}

fn timed(cores: f64, run: u64, seconds: f64) -> Measured {
    let ns = |seconds: f64| (seconds * S) as u64;
    Measured {
        job: format!("{cores}.{run}"),
        begin_ns: run,
        name: "solve".into(),
        user: "ada".into(),
        command: format!("./solve -n {cores}"),
        nodes: vec!["n1".into()],
        allocated: Some(cores),
        busiest: Some(cores * 0.99),
        elapsed_ns: ns(seconds),
        held_ns: Some(ns(seconds * cores)),
        on_cpu_ns: Some(ns(100.0)),
        waits: vec![
            Part { what: "asleep: locks".into(), ns: ns(10.0 * (cores - 1.0)) },
            Part { what: "asleep: timers".into(), ns: ns(5.0) },
        ],
        ..Measured::default()
    }
}

fn runs(sizes: &[f64], times: u64) -> Vec<Measured> {
    sizes.iter().flat_map(|cores| (0..times).map(|at| run(*cores, at))).collect()
}

fn of(runs: &[Measured]) -> Comparison {
    compare(runs, Options::default()).unwrap()
}

fn refused(runs: &[Measured], options: Options) -> String {
    format!("{:#}", compare(runs, options).unwrap_err())
}

fn text(comparison: &Comparison) -> String {
    render(comparison, &Style { width: 100, color: false, unicode: true })
}

use crate::view::Style;

#[test]
fn a_known_curve_gives_its_numbers() {
    let found = of(&runs(&[1.0, 2.0, 4.0, 8.0], 3));
    for (size, speed_up) in found.sizes.iter().zip([1.0, 100.0 / 55.0, 100.0 / 32.5, 100.0 / 21.25])
    {
        assert!((size.speed_up - speed_up).abs() < 1e-6, "{size:?}");
        assert!((size.efficiency - speed_up / size.cores).abs() < 1e-6, "{size:?}");
        assert_eq!(size.jobs.len(), 3);
        let serial = size.serial_fraction.unwrap_or(0.1);
        assert!((serial - 0.1).abs() < 1e-6, "{size:?}");
    }
    assert!(found.sizes[0].serial_fraction.is_none() && found.sizes[0].gain_of_a_tenth.is_none());
    let serial = found.amdahl.as_ref().unwrap().serial_fraction;
    assert!((serial.all - 0.1).abs() < 1e-6 && serial.high - serial.low < 1e-6, "{serial:?}");
    let law = found.scalability.as_ref().unwrap();
    assert!(law.coherency.high < 1e-6 && law.fastest_cores.is_none(), "{law:?}");
    let at_16 = found.amdahl.as_ref().unwrap().seconds_at_twice.all;
    assert!((at_16 - (10.0 + 90.0 / 16.0)).abs() < 1e-4, "{at_16}");
    // As in the laws' own test, of a tenth that is serial.
    let worth = found.worth_cores.unwrap();
    assert!((worth.all - 8.18).abs() < 0.01, "{worth:?}");
    let growth = found.growth.as_ref().unwrap();
    assert!((growth.held.more_ns() / S - 70.0).abs() < 1e-3, "{growth:?}");
    let [grown] = &*growth.waits else { panic!("what did not grow is not told: {growth:?}") };
    assert!(grown.what == "asleep: locks" && (grown.more_ns() / S - 70.0).abs() < 1e-3);
    assert!(found.notes.is_empty(), "{:?}", found.notes);
}

/// As in a queue that is longer for larger jobs.
#[test]
fn a_wait_in_the_queue_that_ate_the_gain_is_told() {
    let queued = |waits: [Option<f64>; 3]| {
        let with = |(cores, wait): (f64, Option<f64>)| {
            (0..3).map(move |at| Measured {
                queued_ns: wait.map(|wait| (wait * S) as u64 + at),
                ..run(cores, at)
            })
        };
        let runs: Vec<_> = [1.0, 2.0, 4.0].into_iter().zip(waits).flat_map(with).collect();
        of(&runs)
    };
    // They take 100, 55 and 32.5 s.
    let eaten = queued([Some(5.0), Some(10.0), Some(60.0)]);
    assert_eq!(eaten.sizes[2].queued_ns, Some(60_000_000_001), "the median");
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = "• 4 cores were the fastest but not the first to be done: 1.00 min in the queue and 32.5 s running; \
                2 cores: 10.0 s in the queue and 55.0 s running •";
    assert!(words(text(&eaten)).contains(told), "{}", text(&eaten));
    let table = |width| {
        let style = Style { width, color: false, unicode: true };
        render(&eaten, &style).lines().skip(1).take(4).map(str::to_owned).collect::<Vec<_>>()
    };
    let [wide, usual, narrow] = [100, 80, 60].map(table);
    let head = "  cores  runs  used     queue      time  ";
    assert!(wide[0].starts_with(&format!("{head}from, to  speed-up")), "{wide:?}");
    assert!(usual[0].starts_with(&format!("{head}speed-up  efficiency")), "{usual:?}");
    assert_eq!(narrow[0], format!("{head}speed-up  effic."));
    assert!(narrow[3].starts_with("  4         3  3.08  1.00 min    32.5 s "), "{narrow:?}");
    let is_told = |found: &Comparison| words(text(found)).contains("not the first to be done");
    assert!(!is_told(&queued([Some(5.0), Some(10.0), Some(32.0)])), "64.5 s are less than 65");
    assert!(is_told(&queued([Some(5.0), Some(10.0), Some(33.0)])), "65.5 s");
    let unknown = queued([Some(5.0), None, Some(60.0)]);
    assert!(!is_told(&unknown) && text(&unknown).contains("  queue  "), "{}", text(&unknown));
    assert!(!text(&queued([None; 3])).contains("queue"));
}

/// Whether `read` is what stands in `tests/`; written there anew with BLESS, as the summaries are.
fn agreed(name: &str, read: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/report/compare/tests");
    let path = format!("{folder}/{name}.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, read).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), read, "{read}");
}

#[test]
fn it_reads_as_agreed() {
    let read = text(&of(&runs(&[1.0, 2.0, 4.0, 8.0], 3)));
    agreed("amdahl", &read);
    let mut slower =
        vec![timed(4.0, 0, 30.0), timed(8.0, 0, 20.0), timed(16.0, 0, 18.0), timed(32.0, 0, 25.0)];
    slower[3].on_cpu_ns = Some(300_000_000_000);
    slower[0].read_bytes = Some(4 << 30);
    slower[1].read_bytes = Some(1 << 20);
    slower[2].node_cores = Some(64);
    slower[3].node_cores = Some(128);
    slower[3].gpus = 4;
    let found = of(&slower);
    agreed("slower", &text(&found));
    for width in [20, 40, 79, 80, 100, 300] {
        let style = Style { width, color: false, unicode: false };
        for line in render(&found, &style).lines() {
            assert!(line.len() <= width.clamp(40, 100) && line.is_ascii(), "{width}: {line}");
        }
    }
}

#[test]
fn no_size_is_told_that_was_not_tried() {
    let times = [(1.0, 100.0), (2.0, 120.0), (4.0, 160.0), (8.0, 300.0)];
    let read = text(&of(&times.map(|(cores, seconds)| timed(cores, 0, seconds))));
    assert!(!read.contains(" 0 "), "{read}");
    assert!(!read.contains("past 1 cores"), "{read}");
    let slower: Vec<_> = [(2.0, 100.0), (4.0, 70.0), (8.0, 90.0), (16.0, 200.0)]
        .map(|(cores, seconds)| timed(cores, 0, seconds))
        .into();
    let found = of(&slower);
    let low = found.scalability.as_ref().unwrap().fastest_cores.as_ref().unwrap().low;
    let read = text(&found);
    let told = read.split("fastest on ").nth(1).unwrap().split([' ', '\n']).next().unwrap();
    assert_eq!(told, format!("{:.0}", low.max(2.0)), "{read}");
}

#[test]
fn of_two_sizes_no_law_is_fitted_and_of_one_nothing_is_compared() {
    let two = of(&runs(&[1.0, 2.0], 1));
    assert!(two.amdahl.is_none() && two.scalability.is_none() && two.worth_cores.is_none());
    let notes = two.notes.join("\n");
    assert!(notes.contains("one run only of size 1, 2:"), "{notes}");
    assert!(notes.contains("two sizes: a law needs three"), "{notes}");
    let three = of(&runs(&[1.0, 2.0, 4.0], 2));
    assert!(three.amdahl.is_some() && three.scalability.is_none());
    assert_eq!(three.notes, ["three sizes: the universal scalability law needs four"]);
    let one = refused(&runs(&[2.0], 3), Options::default());
    let expected = "there are 3 runs, all of size 2 (cores allocated): comparing needs two sizes or more; \
                    --size used goes by the cores that were busy";
    assert_eq!(one, expected);
    assert!(refused(&[], Options::default()).contains("there is no run"));
    let used = Options { by: By::Used, ..Options::default() };
    assert!(
        refused(&runs(&[2.0], 1), used).starts_with("there is one run of size 1.98 (cores used)")
    );
}

#[test]
fn what_is_unknown_or_another_work_is_refused() {
    let mut all = runs(&[1.0, 2.0, 4.0], 1);
    all[1].allocated = None;
    assert_eq!(refused(&all, Options::default()), "the cores allocated of 2.0 are unknown");
    let mut all = runs(&[1.0, 2.0, 4.0], 1);
    all[2].command = "./other".into();
    let said = refused(&all, Options::default());
    assert!(
        said.contains("(--force compares them all the same):\n  their commands differ"),
        "{said}"
    );
    let forced = compare(&all, Options { force: true, ..Options::default() }).unwrap();
    assert!(
        text(&forced).lines().next().unwrap().contains("not the same work"),
        "{}",
        text(&forced)
    );
    assert!(
        text(&forced).contains("Not the same  their commands differ: ./solve -n 1 of 1.0, ./other")
    );
}

#[test]
fn by_cores_used_runs_that_held_the_same_differ_in_size() {
    let used = |figures: &[(f64, f64)]| {
        let run = |(at, (asked, busiest)): (usize, &(f64, f64))| Measured {
            allocated: Some(8.0),
            busiest: Some(*busiest),
            ..run(*asked, at as u64)
        };
        let runs: Vec<_> = figures.iter().enumerate().map(run).collect();
        compare(&runs, Options { by: By::Used, ..Options::default() })
    };
    let cores = |found: Comparison| found.sizes.iter().map(|size| size.cores).collect::<Vec<_>>();
    // As measured, within 5 % one size, by its median; the command says 8.
    let found = used(&[(1.0, 0.97), (8.0, 7.4), (8.0, 7.2), (8.0, 7.3)]).unwrap();
    assert!(text(&found).contains("\n  7.30  "), "{}", text(&found));
    assert_eq!(cores(found), [1.0, 7.3]);
    assert_eq!(cores(used(&[(7.0, 6.4), (7.0, 6.8)]).unwrap()), [6.4, 6.8], "more apart");
    let same = format!("{:#}", used(&[(7.0, 6.45), (7.0, 6.55)]).unwrap_err());
    assert!(same.starts_with("there are 2 runs, all of size 6.45 "), "{same}");
}

#[test]
fn work_that_grows_is_compared_for_equal_amounts() {
    // Twice the cores do twice the work in a tenth more time.
    let all: Vec<_> = [(1.0, 100.0), (2.0, 110.0), (4.0, 121.0)]
        .map(|(cores, seconds)| Measured {
            on_cpu_ns: Some((100.0 * S * cores) as u64),
            ..timed(cores, 0, seconds)
        })
        .into();
    let found = compare(&all, Options { weak: true, ..Options::default() }).unwrap();
    assert!((found.sizes[1].efficiency - 1.0 / 1.1).abs() < 1e-6, "{:?}", found.sizes[1]);
    assert!((found.sizes[2].speed_up - 4.0 / 1.21).abs() < 1e-6, "{:?}", found.sizes[2]);
    assert_eq!(found.sizes[2].median_ns, 121_000_000_000, "its time is its own");
    assert!(!found.notes.iter().any(|note| note.contains("on CPU")), "{:?}", found.notes);
    let strong = compare(&all, Options::default()).unwrap();
    let note = "300 % more time on CPU at the largest size: tasks that wait busily (MPI, OpenMP) look busy; if the work \
                grew with the size, add --weak";
    assert!(strong.notes.iter().any(|said| said == note), "{:?}", strong.notes);
}

proptest! {
    /// Which job is named first does not matter.
    #[test]
    fn the_order_of_jobs_does_not_matter(
        seconds in proptest::collection::vec((0_usize..5, 1.0_f64..100.0), 2..12),
        order in any::<proptest::sample::Index>(),
        weak in any::<bool>(),
    ) {
        let sizes = [1.0, 2.0, 3.0, 8.0, 64.0];
        let run = |(at, (size, seconds)): (usize, &(usize, f64))| timed(sizes[*size], at as u64, *seconds);
        let mut all: Vec<_> = seconds.iter().enumerate().map(run).collect();
        let options = Options { weak, ..Options::default() };
        let said = |all: &[Measured]| match compare(all, options) {
            Ok(found) => serde_json::to_string(&found).unwrap(),
            Err(error) => format!("{error:#}"),
        };
        let first = said(&all);
        let at = order.index(all.len());
        all.rotate_left(at);
        prop_assert_eq!(&said(&all), &first);
        all.reverse();
        prop_assert_eq!(&said(&all), &first);
    }
}

/// Runs that take these seconds on so many cores.
fn taking(times: &[(f64, f64)]) -> Vec<Measured> {
    times.iter().flat_map(|(cores, seconds)| (0..3).map(|at| timed(*cores, at, *seconds))).collect()
}

fn in_one_line(comparison: &Comparison) -> String {
    text(comparison).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn no_number_of_the_table_is_cut_off() {
    let repeated: Vec<_> = [1.0, 2.0, 4.0, 8.0]
        .into_iter()
        .flat_map(|cores| (0..3).map(move |at| (cores, at)))
        .map(|(cores, at)| timed(cores, at, 0.637 / cores + at as f64 / 9.0))
        .collect();
    let found = of(&repeated);
    for width in [40, 60, 80, 88, 100] {
        let text = render(&found, &Style { width, color: false, unicode: true });
        let table = text.split("In short").next().unwrap_or_default();
        assert!(!table.contains('…'), "{width}: {text}");
        let told = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let [from, to] =
            [found.sizes[0].least_ns, found.sizes[0].most_ns].map(crate::base::units::duration);
        assert!(told.contains(&format!("{from}, {to}")), "{width}: {text}");
        if width < 88 {
            assert!(
                told.contains(&format!("from, to: {from}, {to} on 1 core; ")),
                "{width}: {text}"
            );
        }
        let more = format!("{:+.1} %", found.sizes[3].gain_of_a_tenth.unwrap() * 100.0);
        assert_eq!(text.contains(&more), width >= 80, "{width}: {text}");
    }
}

#[test]
fn what_is_slower_on_all_larger_sizes_is_said_to_be() {
    let told = in_one_line(&of(&taking(&[(1.0, 100.0), (2.0, 120.0), (4.0, 160.0), (8.0, 300.0)])));
    assert!(told.contains(": more cores are slower;"), "{told}");
    assert!(told.contains("more cores than 1 are not worth it: they were slower"), "{told}");
    for wrong in ["on 0 to", "fastest on", "1 cores"] {
        assert!(!told.contains(wrong), "{wrong}: {told}");
    }
}

#[test]
fn runs_that_gain_nothing_are_not_called_faster() {
    let flat = in_one_line(&of(&taking(&[(1.0, 100.0), (2.0, 100.0), (4.0, 100.0), (8.0, 100.0)])));
    assert!(flat.contains("more cores than 1 are not worth it"), "{flat}");
    assert!(flat.contains("coherency 0.00 %: more cores are hardly faster, if at all;"), "{flat}");
    let slow = in_one_line(&of(&taking(&[(1.0, 100.0), (2.0, 200.0), (4.0, 400.0), (8.0, 800.0)])));
    assert!(slow.contains("more cores are slower;") && !slow.contains("fastest on"), "{slow}");
}

#[test]
fn work_that_grows_is_foretold_for_that_of_the_smallest_size() {
    let weak = Options { weak: true, ..Options::default() };
    let runs = taking(&[(1.0, 100.0), (2.0, 101.0), (4.0, 103.0), (8.0, 107.0)]);
    let told = in_one_line(&compare(&runs, weak).unwrap());
    assert!(
        told.contains("8 cores were 7.48 times as fast as 1 for the work of 1 core:"),
        "{told}"
    );
    assert_eq!(
        told.matches("16 cores would take 7.19 s for the work of 1 core").count(),
        2,
        "{told}"
    );
}

#[test]
fn a_law_that_does_not_fit_foretells_nothing() {
    let found = of(&taking(&[(1.0, 100.0), (2.0, 20.0), (4.0, 90.0), (8.0, 15.0)]));
    assert!(found.amdahl.is_none() && found.scalability.is_none() && found.worth_cores.is_none());
    let told = in_one_line(&found);
    assert!(!told.contains("would take"), "{told}");
    for law in ["Amdahl's law", "the universal scalability law"] {
        assert!(told.contains(&format!("{law} misses the measured times by ")), "{told}");
    }
    let why = "so it foretells nothing: usually other work disturbed some runs, nodes differ, or data fits into caches";
    assert_eq!(told.matches(why).count(), 2, "{told}");
    // A few per cent are any machine's.
    let near = of(&taking(&[(1.0, 103.0), (2.0, 54.0), (4.0, 33.5), (8.0, 20.8)]));
    assert!(near.amdahl.is_some() && near.scalability.is_some(), "{:?}", near.notes);
}
