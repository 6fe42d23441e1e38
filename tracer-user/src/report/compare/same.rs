//! Whether runs did the same work, as far as their records tell: the reasons why not.

use super::measured::{By, Measured};
use crate::base::units::bytes;

/// Amounts that differ by more are another work.
const FACTOR: f64 = 2.0;
/// Work that a command tells grows with the size where it grows as much, but for this part.
const IN_PROPORTION: f64 = 0.05;
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
    let command = |run: &Measured| !run.command.is_empty();
    match runs.iter().all(|run| command(run)) {
        true => said.extend(text("their commands", |run| &run.command, &|one, other| {
            is_alike(words(&one.command), words(&other.command), |a, b| {
                is_size(one, other, by, a, b) || is_weak && grows(one, other, by, a, b)
            })
        })),
        // Of a scheduler's job nothing else is known of what it does.
        false => said.extend(text("their names", |run| &run.name, &|one, other| {
            is_alike(pieces(&one.name), pieces(&other.name), |a, b| is_size(one, other, by, a, b))
        })),
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

/// Whether two numbers tell the size of each of two runs.
fn is_size(one: &Measured, other: &Measured, by: By, a: &str, b: &str) -> bool {
    sizes(one, by).iter().zip(&sizes(other, by)).any(|(x, y)| x == a && y == b)
}

/// Whether two numbers grow as the sizes of two runs do.
fn grows(one: &Measured, other: &Measured, by: By, a: &str, b: &str) -> bool {
    let numbers = number(a).zip(number(b)).filter(|(a, b)| *a > 0 && *b > 0);
    numbers.zip(one.cores(by).zip(other.cores(by))).is_some_and(|((a, b), (of_a, of_b))| {
        let (work, size) = (b as f64 / a as f64, of_b / of_a);
        (work - size).abs() <= IN_PROPORTION * work.min(size)
    })
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// Whether two texts are the same but for pieces that `may_differ`.
fn is_alike(one: Vec<&str>, other: Vec<&str>, may_differ: impl Fn(&str, &str) -> bool) -> bool {
    one.len() == other.len() && one.iter().zip(&other).all(|(a, b)| a == b || may_differ(a, b))
}

/// A command in words, and the numbers that can be set in it: words of digits, the value of an option (`-n4`,
/// `--threads=4`, `THREADS=4`). A number in the name of a file is part of that word.
fn words(command: &str) -> Vec<&str> {
    let parts = command.split_whitespace().flat_map(|word| word.split_inclusive(['=', ',', ':']));
    parts.flat_map(option_and_value).collect()
}

fn option_and_value(part: &str) -> Vec<&str> {
    let option = part.trim_end_matches(|c: char| c.is_ascii_digit());
    match option.starts_with('-') && option.len() < part.len() {
        true => vec![option, &part[option.len()..]],
        false => vec![part],
    }
}

/// Options that tell the number of cores, by a part of their name.
const CORES: [&str; 9] = ["thread", "core", "cpu", "proc", "rank", "task", "worker", "job", "node"];
/// And short ones.
const SHORT: [&str; 8] = ["n", "t", "j", "c", "p", "w", "np", "nt"];

/// Whether the word before a number says that it is one of cores.
fn tells_cores(before: &str) -> bool {
    let name = before.trim_start_matches('-').trim_end_matches('=').to_lowercase();
    let is_short = before.starts_with('-') && SHORT.contains(&&*name);
    is_short || CORES.iter().any(|part| name.contains(part))
}

/// Numbers in which the commands of the smallest and the largest differ, where nothing says that they are the size: what
/// they are taken for, a sentence each.
pub fn numbers(runs: &[&Measured], by: By, is_weak: bool) -> Vec<String> {
    let [one, .., other] = runs else { return Vec::new() };
    let (of_one, of_other) = (words(&one.command), words(&other.command));
    let told = |at: usize| at > 0 && tells_cores(of_one[at - 1]);
    let differ = of_one.iter().zip(&of_other).enumerate();
    let differ = differ.filter(|(at, (a, b))| a != b && !told(*at)).map(|(_, both)| both);
    let (mut sizes, mut amounts) = (Vec::new(), Vec::new());
    for (a, b) in differ {
        if is_size(one, other, by, a, b) {
            sizes.push(format!("{a} and {b}"));
        } else if is_weak && grows(one, other, by, a, b) {
            amounts.push(format!("{a} and {b}"));
        }
    }
    [(sizes, "the size"), (amounts, "work that grows with the size")]
        .into_iter()
        .filter(|(differ, _)| !differ.is_empty())
        .map(|(differ, what)| {
            format!("their commands differ ({}), taken for {what}", differ.join("; "))
        })
        .collect()
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
            // A number in a file's name is another file.
            ("./md in2.dat", "./md in8.dat", false),
            ("./md run2/in", "./md run8/in", false),
            ("OMP_NUM_THREADS=2 ./md", "OMP_NUM_THREADS=8 ./md", true),
            ("mpirun --map-by ppr:2:node ./md", "mpirun --map-by ppr:8:node ./md", false),
        ] {
            let runs = [run("1", 2.0, one), run("2", 8.0, other)];
            assert_eq!(reasons(&runs, false).is_empty(), is_same, "{one} | {other}");
        }
        let differ = reasons(&[run("1", 2.0, "./a"), run("2", 8.0, "./b")], false);
        assert_eq!(differ, ["their commands differ: ./a of 1, ./b of 2"]);
    }

    /// Whether they did the same work on a core and on two, and what their numbers were taken for.
    fn grown(one: &str, other: &str, is_weak: bool) -> (bool, Vec<String>) {
        let runs = [run("1", 1.0, one), run("2", 2.0, other)];
        let said = numbers(&[&runs[0], &runs[1]], By::Allocated, is_weak);
        (reasons(&runs, is_weak).is_empty(), said)
    }

    #[test]
    fn work_that_grows_may_tell_its_amount() {
        let of = |one: &str, other: &str, is_weak| {
            reasons(&[run("1", 2.0, one), run("2", 8.0, other)], is_weak).is_empty()
        };
        assert!(of("./s 10 2", "./s 40 8", true));
        assert!(!of("./s 10 2", "./s 40 8", false), "that is four times the work");
        assert!(
            !of("./s 10 2", "./s 20 8", true),
            "that is twice the work on four times the cores"
        );
        assert!(!of("./s 0 2", "./s 1 8", true));
        assert!(!of("./s 40 2", "./s 10 8", true), "it shrinks");
        assert!(!of("./s 10", "./s fast", true) && !of("./s fast", "./s 10", true));
        assert!(!of("./s --seed 1", "./s --seed 9", true));
        assert!(!of("./s in1.dat", "./s in4.dat", true), "another file is other work");
        assert!(of("./s 99", "./s 401", true), "about four times");
    }

    #[test]
    fn what_a_number_was_taken_for_is_told() {
        let work = "their commands differ (10 and 20), taken for work that grows with the size";
        let size = "their commands differ (1 and 2), taken for the size";
        let said = |of: &[&str]| (true, of.iter().map(|said| (*said).to_owned()).collect());
        assert_eq!(grown("./s 10", "./s 20", true), said(&[work]));
        assert_eq!(grown("./s 10 1", "./s 20 2", true), said(&[size, work]));
        assert_eq!(grown("./s -n 1", "./s -n 2", false), said(&[]));
        assert_eq!(grown("./s -t1", "./s -t2", false), said(&[]));
        assert_eq!(grown("./s --steps 1", "./s --steps 2", false), said(&[size]));
        assert_eq!(grown("./s 10", "./s 20", false), (false, vec![]), "which is no size");
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
