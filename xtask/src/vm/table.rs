//! What came of the boots: findings of one, a table of all, the sections of docs/KERNELS.md and
//! docs/KERNELS-arm64.md.

use super::Cgroups;
use super::expected;
use super::machine::{LostBoots, Told};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use xtask::guest::{Line, Outcome};
use xtask::markdown::Table;
use xtask::sections::Section;

/// What one boot found.
#[derive(Serialize, Deserialize)]
pub struct Column {
    /// The kernel by our name.
    kernel: String,
    /// Its `uname -r`.
    release: String,
    cgroups: Cgroups,
    rows: Vec<Row>,
    /// Why it ended early.
    broken: Option<String>,
    lost: LostBoots,
    seconds: f64,
}

/// A hook or a check.
#[derive(Serialize, Deserialize)]
struct Row {
    name: String,
    is_hook: bool,
    outcome: Outcome,
    lines: Vec<String>,
}

impl Column {
    /// Of all that the guest said. A hook that is absent although this kernel is not known to lack it
    /// counts as failed; a check that did not end, too.
    pub fn new(kernel: &str, cgroups: Cgroups, told: Told, seconds: f64) -> Self {
        let (mut release, mut machine) = (String::new(), String::new());
        let (mut rows, mut begun) = (Vec::new(), None);
        for line in told.lines {
            match line {
                Line::Begin { release: own, machine: its } => (release, machine) = (own, its),
                Line::Hook { program, outcome, why } => {
                    let known = expected::lacks(&program, &release, &machine, cgroups.name());
                    let outcome = match outcome {
                        Outcome::Absent if known.is_none() => Outcome::Failed,
                        other => other,
                    };
                    let lines = if why.is_empty() { Vec::new() } else { vec![why] };
                    rows.push(Row { name: program, is_hook: true, outcome, lines });
                }
                Line::Start { check } => begun = Some(check),
                Line::Check { check, outcome, lines } => {
                    begun = None;
                    rows.push(Row { name: check, is_hook: false, outcome, lines });
                }
                Line::Size(_) | Line::End => {}
            }
        }
        if let (Some(name), Some(why)) = (begun, &told.broken) {
            let lines = vec![why.clone()];
            rows.push(Row { name, is_hook: false, outcome: Outcome::Failed, lines });
        }
        let (kernel, broken, lost) = (kernel.to_owned(), told.broken, told.lost);
        Self { kernel, release, cgroups, rows, broken, lost, seconds }
    }

    /// Whether it is the boot of this kernel with these cgroups.
    pub fn is_of(&self, kernel: &str, cgroups: Cgroups) -> bool {
        self.kernel == kernel && self.cgroups == cgroups
    }

    /// Hooks and checks that failed, with what does not agree; that the guest stopped, where it did between two.
    pub fn failures(&self) -> Vec<String> {
        let title = self.title();
        let failed = self.rows.iter().filter(|row| row.outcome == Outcome::Failed);
        let words = |row: &Row| {
            let lines = row.lines.iter().flat_map(|lines| lines.lines());
            let (agree, other): (Vec<_>, Vec<_>) = lines.partition(|line| line.starts_with("ok "));
            let shown = if other.is_empty() { agree } else { other };
            format!("{title}, {}: {}", row.name, shown.join("; "))
        };
        let mut failures: Vec<String> = failed.map(words).collect();
        if let (true, Some(why)) = (failures.is_empty(), &self.broken) {
            failures.push(format!("{title}: it did not come to its end: {why}"));
        }
        failures
    }

    /// What is not well, in words; with `verbose` every comparison.
    pub fn findings(&self, verbose: bool) -> String {
        let mut text =
            format!("{}, cgroup {}, {:.0} s\n", self.release, self.cgroups.name(), self.seconds);
        for row in &self.rows {
            let shown = match row.outcome {
                Outcome::Failed | Outcome::Absent => true,
                Outcome::Ok | Outcome::Unneeded => verbose,
            };
            if shown {
                let _ = writeln!(text, "  {}: {}", row.name, word(row.outcome));
                for line in row.lines.iter().flat_map(|lines| lines.lines()) {
                    let _ = writeln!(text, "    {line}");
                }
            }
        }
        if let Some(why) = &self.broken {
            let _ = writeln!(text, "  it did not come to its end: {why}");
        }
        text
    }

    fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    fn title(&self) -> String {
        let version = self.release.split('-').next().unwrap_or_default();
        let version = if self.release.is_empty() { &self.kernel } else { version };
        format!("{version} {}", self.cgroups.name())
    }
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Unneeded => "–",
        Outcome::Absent => "absent",
        Outcome::Failed => "FAILED",
    }
}

/// Hooks, then checks, by kernel and version of cgroups; boots that crashed and were made again.
pub fn markdown(columns: &[Column]) -> String {
    format!("{}\n{}", table(columns, true), table(columns, false))
}

fn table(columns: &[Column], hooks: bool) -> Table {
    let mut names: Vec<&str> = Vec::new();
    for row in columns.iter().flat_map(|column| &column.rows).filter(|row| row.is_hook == hooks) {
        if !names.contains(&row.name.as_str()) {
            names.push(&row.name);
        }
    }
    let head = if hooks { "hook" } else { "check" };
    let titles = columns.iter().map(Column::title);
    let titles: Vec<String> = std::iter::once(head.to_owned()).chain(titles).collect();
    let mut table = Table::new(&titles.join(" | "));
    let mut row = |name: &str, cell: &dyn Fn(&Column) -> String| {
        let cells = columns.iter().map(cell);
        table.cells(std::iter::once(name.to_owned()).chain(cells));
    };
    for name in names {
        row(name, &|column| {
            column.row(name).map_or(String::new(), |row| word(row.outcome).to_owned())
        });
    }
    if !hooks {
        row("boots lost before the guest ran", &|column| column.lost.early.to_string());
        row("boots lost later", &|column| column.lost.late.to_string());
    }
    table
}

/// Why something is absent or failed, each reason once with the columns it holds for.
fn reasons(columns: &[Column]) -> String {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for column in columns {
        for row in &column.rows {
            let is_told = matches!(row.outcome, Outcome::Absent | Outcome::Failed);
            let is_at_odds = |line: &&String| !line.starts_with("ok ");
            let line = row.lines.iter().find(is_at_odds).or(row.lines.first());
            let Some(line) = line.filter(|_| is_told) else { continue };
            let why = format!("`{}`: {}", row.name, line.lines().next().unwrap_or_default());
            match all.iter_mut().find(|(own, _)| *own == why) {
                Some((_, titles)) => titles.push(column.title()),
                None => all.push((why, vec![column.title()])),
            }
        }
    }
    all.iter().fold(String::new(), |mut text, (why, titles)| {
        let _ = writeln!(text, "- {why} ({})", titles.join(", "));
        text
    })
}

/// Comparisons worth showing: one job's scheduling, as they were made.
fn samples(columns: &[Column]) -> String {
    let mut table = Table::new("kernel | >ours | the kernel's own");
    for column in columns {
        let lines = column.row("jobs of the agent").map_or(&[][..], |row| &row.lines);
        for (what, ours, truth) in lines.iter().filter_map(|line| parts(line)) {
            if what.starts_with("71 ") {
                table.row([&format_args!("{} {what}", column.title()), &ours, &truth]);
            }
        }
    }
    table.to_string()
}

/// `ok   what: ours 1, kernel's 1 to 2, allowed 1 to 2` in its parts.
fn parts(line: &str) -> Option<(&str, &str, &str)> {
    let (what, rest) = line.split_once(' ')?.1.trim_start().split_once(": ours ")?;
    let (ours, rest) = rest.split_once(", kernel's ")?;
    Some((what, ours, rest.split_once(", allowed")?.0))
}

/// What docs/KERNELS.md or docs/KERNELS-arm64.md has of these boots.
pub fn sections(columns: &[Column]) -> Vec<Section> {
    let reasons = match reasons(columns) {
        empty if empty.is_empty() => "Nothing.\n".to_owned(),
        some => some,
    };
    vec![("boots", markdown(columns)), ("absent", reasons), ("job", samples(columns))]
}

#[cfg(test)]
mod tests {
    use super::super::arch::Arch;
    use super::*;

    fn told(lines: Vec<Line>, broken: Option<&str>) -> Told {
        Told {
            lines,
            broken: broken.map(str::to_owned),
            is_silent: false,
            lost: LostBoots { early: 2, late: 0 },
        }
    }

    fn begin() -> Line {
        Line::Begin { release: "6.1.0-50-cloud-amd64".into(), machine: "x86_64".into() }
    }

    #[test]
    fn a_hook_that_should_be_there_and_is_not_has_failed() {
        let hook =
            |outcome| Line::Hook { program: "sched_switch".into(), outcome, why: "no".into() };
        let absent = told(vec![begin(), hook(Outcome::Absent), Line::End], None);
        assert_eq!(Column::new("6.1", Cgroups::V2, absent, 1.0).failures().len(), 1);
        let there = told(vec![begin(), hook(Outcome::Ok), Line::End], None);
        assert_eq!(Column::new("6.1", Cgroups::V2, there, 1.0).failures().len(), 0);
    }

    #[test]
    fn what_another_machine_lacks_is_absent() {
        let begin = |machine: &str| Line::Begin {
            release: "6.12.107+deb13-cloud".into(),
            machine: machine.into(),
        };
        let hook = Line::Hook {
            program: "page_fault_kernel".into(),
            outcome: Outcome::Absent,
            why: "no tracepoint page_fault_kernel".into(),
        };
        for (machine, failures) in [("x86_64", 1), ("aarch64", 0)] {
            let told = told(vec![begin(machine), hook.clone(), Line::End], None);
            let columns = [Column::new("6.12", Cgroups::V2, told, 1.0)];
            assert_eq!(columns[0].failures().len(), failures, "{machine}");
            assert!(reasons(&columns).contains("no tracepoint page_fault_kernel"));
        }
    }

    #[test]
    fn what_failed_is_told_and_not_what_was_well() {
        let lines = vec!["ok   a: ours 1".to_owned(), "off  b: ours 2".to_owned()];
        let check = Line::Check { check: "forks".into(), outcome: Outcome::Failed, lines };
        let column =
            Column::new("6.1", Cgroups::V2, told(vec![begin(), check, Line::End], None), 1.0);
        assert_eq!(reasons(&[column]), "- `forks`: off  b: ours 2 (6.1.0 v2)\n");
    }

    #[test]
    fn each_architecture_has_a_document_with_all_sections() {
        for arch in Arch::ALL {
            let text = xtask::sections::with(arch.document(), &sections(&[])).unwrap();
            assert!(text.contains("<!-- absent -->\nNothing.\n"), "{text}");
            assert_eq!(text.matches("<!-- /").count(), 3);
        }
    }

    #[test]
    fn a_check_that_does_not_end_has_failed() {
        let lines = vec![begin(), Line::Start { check: "sleeps".into() }];
        let column = Column::new("6.1", Cgroups::V1, told(lines, Some("the machine ended")), 1.0);
        assert_eq!(column.failures().len(), 1);
        assert!(column.findings(false).contains("sleeps: FAILED"));
        let between = Column::new("6.1", Cgroups::V1, told(vec![begin()], Some("it ended")), 1.0);
        assert_eq!(between.failures().len(), 1);
    }

    #[test]
    fn a_failure_tells_what_does_not_agree() {
        let lines = vec!["ok   execs: ours 1".to_owned(), "off  forks: ours 3".to_owned()];
        let check = Line::Check { check: "jobs".into(), outcome: Outcome::Failed, lines };
        let column =
            Column::new("6.1", Cgroups::V1, told(vec![begin(), check, Line::End], None), 1.0);
        let [failure] = &column.failures()[..] else { panic!("one failure") };
        assert!(failure.ends_with("v1, jobs: off  forks: ours 3"), "{failure}");
    }

    #[test]
    fn tables_name_kernel_and_cgroups() {
        let lines = vec!["ok   forks: ours 3, kernel's 3, allowed 3 to 3".to_owned()];
        let check = Line::Check { check: "forks".into(), outcome: Outcome::Ok, lines };
        let column =
            Column::new("6.1", Cgroups::V1, told(vec![begin(), check, Line::End], None), 1.0);
        let text = markdown(&[column]);
        assert!(text.contains("| boots lost before the guest ran | 2 |"), "{text}");
        assert!(text.contains("| check | 6.1.0 v1 |\n| --- | --- |\n| forks | ok |\n"), "{text}");
        let line = "ok   a b: ours 3, kernel's 3 to 4, allowed 1 to 5";
        assert_eq!(parts(line), Some(("a b", "3", "3 to 4")));
    }
}
