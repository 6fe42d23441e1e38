//! Whether runs did the same work, as far as their records tell: the reasons why not.

use super::measured::{By, Measured};
use crate::base::units::bytes;

/// Amounts that differ by more are another work.
const FACTOR: f64 = 2.0;
/// Less than this is no amount: logs, temporary files.
const LEAST_BYTES: u64 = 64 << 20;

/// Why `runs` did not do the same work, a sentence each; nothing where they did. What they write may grow with their
/// size where `is_weak`.
pub fn differences(runs: &[&Measured], by: By, is_weak: bool) -> Vec<String> {
    let mut said: Vec<String> = runs
        .iter()
        .filter_map(|run| Some(format!("{} {}", run.job, run.incomplete.as_ref()?)))
        .collect();
    let others = || runs.iter().skip(1).map(|run| (runs[0], *run));
    let text = |what: &str,
                of: fn(&Measured) -> &str,
                is_same: &dyn Fn(&Measured, &Measured) -> bool| {
        let differ = |(one, other): &(&Measured, &Measured)| {
            !of(one).is_empty() && !of(other).is_empty() && !is_same(one, other)
        };
        let (one, other) = others().find(differ)?;
        Some(format!("{what} differ: {} of {}, {} of {}", of(one), one.job, of(other), other.job))
    };
    said.extend(text("their owners", |run| &run.user, &|one, other| one.user == other.user));
    let alike = |of: fn(&Measured) -> &str| {
        move |one: &Measured, other: &Measured| {
            is_alike(of(one), &sizes(one, by), of(other), &sizes(other, by))
        }
    };
    let command = |run: &Measured| !run.command.is_empty();
    match runs.iter().all(|run| command(run)) {
        true => said.extend(text("their commands", |run| &run.command, &alike(|run| &run.command))),
        // Of a scheduler's job nothing else is known of what it does.
        false => said.extend(text("their names", |run| &run.name, &alike(|run| &run.name))),
    }
    said.extend(written(runs, by, is_weak));
    said
}

/// The numbers by which a command may tell its own size: cores, nodes, cores of a node. What was used is a little less
/// than what was asked of it.
fn sizes(run: &Measured, by: By) -> Vec<String> {
    let cores = run.cores(by).map_or(0, |cores| cores.ceil() as u64);
    let nodes = run.nodes.len() as u64;
    [cores, nodes, cores / nodes.max(1)].iter().map(u64::to_string).collect()
}

/// Whether two texts are the same but for numbers that tell the size of each.
fn is_alike(one: &str, of_one: &[String], other: &str, of_other: &[String]) -> bool {
    let (one, other) = (pieces(one), pieces(other));
    let is_same = |(a, b): (&&str, &&str)| {
        let is_size = || of_one.iter().zip(of_other).any(|(x, y)| x == a && y == b);
        a == b || is_size()
    };
    one.len() == other.len() && one.iter().zip(&other).all(is_same)
}

/// Numbers and what is between them.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_digit = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_digit).unwrap_or(rest.len());
        let (piece, more) = rest.split_at(end);
        pieces.push(piece);
        rest = more;
    }
    pieces
}

/// What runs wrote differs by more than a factor. What they read tells less: the page cache may have had it.
fn written<'a>(runs: &[&'a Measured], by: By, is_weak: bool) -> Option<String> {
    let amount = |run: &&'a Measured| {
        let per = if is_weak { run.cores(by)? } else { 1.0 };
        Some((run.written_bytes? as f64 / per, run.written_bytes?, run.job.as_str()))
    };
    let known = || runs.iter().filter_map(amount);
    let least = known().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let most = known().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let differ = most.1 >= LEAST_BYTES && most.0 > FACTOR * least.0;
    differ.then(|| {
        let each = if is_weak { " for each core" } else { "" };
        format!(
            "what they wrote to disks differs by more than a factor of {FACTOR}{each}: {} by {}, {} by {}",
            bytes(least.1),
            least.2,
            bytes(most.1),
            most.2
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(job: &str, cores: f64, command: &str) -> Measured {
        Measured {
            job: job.into(),
            user: "ada".into(),
            command: command.into(),
            allocated: Some(cores),
            nodes: vec!["n1".into()],
            ..Measured::default()
        }
    }

    fn reasons(runs: &[Measured], is_weak: bool) -> Vec<String> {
        differences(&runs.iter().collect::<Vec<_>>(), By::Allocated, is_weak)
    }

    #[test]
    fn a_command_may_tell_its_own_size_and_nothing_else() {
        for (one, other, is_same) in [
            ("./md -n 2 in.dat", "./md -n 8 in.dat", true),
            ("./md in.dat", "./md in.dat", true),
            ("./md -t2 --grid 512", "./md -t8 --grid 512", true),
            ("./md -n 2 --grid 512", "./md -n 8 --grid 1024", false),
            ("./md -n 2", "./md -n 9", false),
            ("./md -n 12", "./md -n 18", false),
            ("./md -n 2", "./md", false),
            ("./md in.dat", "./mc in.dat", false),
        ] {
            let runs = [run("1", 2.0, one), run("2", 8.0, other)];
            assert_eq!(reasons(&runs, false).is_empty(), is_same, "{one} | {other}");
        }
        let differ = reasons(&[run("1", 2.0, "./a"), run("2", 8.0, "./b")], false);
        assert_eq!(differ, ["their commands differ: ./a of 1, ./b of 2"]);
    }

    #[test]
    fn owners_names_and_ends_are_compared_where_they_are_known() {
        let mut runs = [run("1", 2.0, ""), run("2", 8.0, "")];
        assert!(reasons(&runs, false).is_empty());
        (runs[0].name, runs[1].name) = ("md-2".into(), "md-8".into());
        assert!(reasons(&runs, false).is_empty());
        runs[1].name = "train".into();
        assert_eq!(reasons(&runs, false), ["their names differ: md-2 of 1, train of 2"]);
        runs[1].user = "bob".into();
        runs[1].incomplete = Some("has not ended".into());
        let expected = [
            "2 has not ended",
            "their owners differ: ada of 1, bob of 2",
            "their names differ: md-2 of 1, train of 2",
        ];
        assert_eq!(reasons(&runs, false), expected);
        runs[1].user = String::new();
        assert_eq!(reasons(&runs, false).len(), 2, "an unknown owner is no other one");
    }

    #[test]
    fn what_they_wrote_may_differ_by_a_factor_of_two() {
        let mut runs = [run("1", 2.0, "./a"), run("2", 8.0, "./a")];
        let mut of = |one: u64, other: u64, is_weak| {
            (runs[0].written_bytes, runs[1].written_bytes) = (Some(one), Some(other));
            reasons(&runs, is_weak)
        };
        const GIB: u64 = 1 << 30;
        assert!(of(GIB, 2 * GIB, false).is_empty());
        let expected =
            "what they wrote to disks differs by more than a factor of 2: 1 GiB by 1, 4 GiB by 2";
        assert_eq!(of(GIB, 4 * GIB, false), [expected]);
        assert!(of(GIB, 4 * GIB, true).is_empty(), "as much for each core");
        assert_eq!(of(GIB, GIB, true).len(), 1, "a quarter for each core");
        assert!(of(1 << 10, 60 << 20, false).is_empty(), "next to nothing");
    }
}
