//! What is said of runs besides their numbers.

use super::*;

#[test]
fn runs_that_were_kept_from_their_cores_are_told() {
    let told = |missed: f64| {
        let mut all = runs(&[1.0, 2.0, 4.0, 8.0], 3);
        all.iter_mut().for_each(|run| {
            run.missed = Some(if run.allocated == Some(2.0) { missed } else { 0.0 })
        });
        of(&all).notes
    };
    let said = "runs did not get all the core time that they could have used (15 % of size 2 missed): usually other work \
                ran there, so what is serial here is not the program's alone; repeat them on cores that nobody else uses";
    assert_eq!(told(0.15), [said]);
    assert!(told(0.14).is_empty());
}

#[test]
fn sizes_that_differ_less_than_their_runs_are_told() {
    let notes = |second_at_two: f64| {
        let all = [(1.0, 100.0), (1.0, 140.0), (2.0, 60.0), (2.0, second_at_two), (4.0, 20.0)];
        let runs: Vec<_> =
            (0..).zip(all).map(|(at, (cores, seconds))| timed(cores, at, seconds)).collect();
        of(&runs).notes.join("\n")
    };
    let told = notes(138.0);
    assert!(told.contains("differ by more than the sizes do (1 and 2):"), "{told}");
    assert!(
        !notes(90.0).contains("differ by more"),
        "no run of two cores was slower than one of one"
    );
}

#[test]
fn sizes_that_gain_more_than_their_cores_are_told() {
    let notes =
        |at_four| of(&taking(&[(1.0, 100.0), (2.0, 50.0), (4.0, at_four)])).notes.join("\n");
    let told = notes(20.0);
    assert!(told.contains("an efficiency of more than 100 % (125 % on 4)"), "{told}");
    assert!(!notes(25.0).contains("more than 100 %"));
}

#[test]
fn sizes_by_the_busiest_moment_of_runs_without_one_are_told_of() {
    let notes = |readings, by| {
        let mut all = runs(&[1.0, 2.0, 4.0, 8.0], 3);
        all.iter_mut().for_each(|run| run.readings = readings);
        compare(&all, Options { by, ..Options::default() }).unwrap().notes
    };
    assert!(notes(3, By::Used).is_empty() && notes(2, By::Allocated).is_empty());
    let notes = notes(2, By::Used);
    assert!(
        notes[0].starts_with("some runs were read fewer than 3 times: the cores busy"),
        "{notes:?}"
    );
}
