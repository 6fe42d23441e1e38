//! What came of the boots: findings of one, a table of all, docs/KERNELS.md and docs/KERNELS-arm64.md.

use super::Cgroups;
use super::arch::Arch;
use super::expected;
use super::machine::{LostBoots, Told};
use std::fmt::Write;
use xtask::guest::{Line, Outcome};

/// What one boot found.
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
                    let known = expected::lacks(&program, &release, &machine);
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

    /// How many hooks and checks failed; one more where the guest stopped between two.
    pub fn failures(&self) -> usize {
        let failed = self.rows.iter().filter(|row| row.outcome == Outcome::Failed).count();
        if failed == 0 { self.broken.iter().count() } else { failed }
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

/// Hooks, then checks, by kernel and version of cgroups.
pub fn markdown(columns: &[Column]) -> String {
    table(columns, true) + "\n" + &table(columns, false) + &lost_boots(columns)
}

/// Two more rows: boots that crashed and were made again.
fn lost_boots(columns: &[Column]) -> String {
    let row = |name: &str, count: fn(&LostBoots) -> u32| {
        let cells = columns.iter().map(|column| count(&column.lost).to_string());
        format!("| {name} | {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    row("boots lost before the guest ran", |lost| lost.early)
        + &row("boots lost later", |lost| lost.late)
}

fn table(columns: &[Column], hooks: bool) -> String {
    let mut names: Vec<&str> = Vec::new();
    for row in columns.iter().flat_map(|column| &column.rows).filter(|row| row.is_hook == hooks) {
        if !names.contains(&row.name.as_str()) {
            names.push(&row.name);
        }
    }
    let titles: Vec<String> = columns.iter().map(Column::title).collect();
    let head = if hooks { "hook" } else { "check" };
    let mut text =
        format!("| {head} | {} |\n|---|{}\n", titles.join(" | "), "---|".repeat(titles.len()));
    for name in names {
        let cells =
            columns.iter().map(|column| column.row(name).map_or("", |row| word(row.outcome)));
        let _ = writeln!(text, "| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    text
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
    let mut text = String::from("| kernel | ours | the kernel's own |\n|---|---:|---|\n");
    for column in columns {
        let lines = column.row("jobs of the agent").map_or(&[][..], |row| &row.lines);
        for line in lines {
            let Some((what, ours, truth)) = parts(line) else { continue };
            if !what.starts_with("71 ") {
                continue;
            }
            let _ = writeln!(text, "| {} {what} | {ours} | {truth} |", column.title());
        }
    }
    text
}

/// `ok   what: ours 1, kernel's 1 to 2, allowed 1 to 2` in its parts.
fn parts(line: &str) -> Option<(&str, &str, &str)> {
    let (what, rest) = line.split_once(' ')?.1.trim_start().split_once(": ours ")?;
    let (ours, rest) = rest.split_once(", kernel's ")?;
    Some((what, ours, rest.split_once(", allowed")?.0))
}

/// The document of an architecture: title, how it was written, what is its own.
fn head(arch: Arch) -> (&'static str, &'static str, &'static str) {
    match arch {
        Arch::X86 => (
            "Kernels",
            "Written by `cargo xtask vm --write --keep-going`, which boots Debian's cloud kernels in\n\
             emulated machines of two CPUs and runs jobtrace there as a user would. Repeat it with that\n\
             command; `cargo xtask vm --help` has more, other kernels and other builds of jobtrace too.\n\
             Nothing but qemu and apt is needed, and no root unless they are to be installed. The same\n\
             on 64-bit ARM: [KERNELS-arm64.md](KERNELS-arm64.md).",
            "**absent**: the kernel lacks it, and jobtrace says so. Linux 6.12 crashes in emulation\n\
             about every second time before it starts the first process, and later now and then where\n\
             qemu's own faults are known (cmpxchg16b, code that patches itself); it is booted again in\n\
             these two cases, and in no other. The last rows count such boots.",
        ),
        Arch::Arm => (
            "Kernels on 64-bit ARM",
            "Written by `cargo xtask vm --arch arm64 --write --keep-going`, which does on Debian's arm64\n\
             kernels what [KERNELS.md](KERNELS.md) shows of x86-64: machines of two emulated CPUs (a\n\
             Neoverse N1, pages of 4 KiB), the same BPF object, jobtrace built for arm64 from the same\n\
             sources, the same checks. Repeat it with that command. Where the host is none of ARM's it\n\
             takes a cross compiler, which is installed, and `rustup target add\n\
             aarch64-unknown-linux-gnu`. No ARM hardware was tried.",
            "**absent**: the kernel lacks it, and jobtrace says so. The tracepoints of page faults are\n\
             x86-64's; on arm64 faults are timed from `handle_mm_fault` on, by an fentry program, which\n\
             takes Linux 6.4 or newer: what comes before it, the wait for the address space's lock\n\
             included, is not in `minor_latency_ns` and `major_latency_ns` there. A boot that crashes\n\
             before the first process is made again; the last rows count such boots.",
        ),
    }
}

/// The document of all boots of an architecture.
pub fn document(arch: Arch, columns: &[Column]) -> String {
    let (title, written, own) = head(arch);
    format!(
        "# {title}\n\n{written}\n\n\
         Emulation shows what is true, not how long it takes. The checks compare amounts with the\n\
         kernel's own accounts of the same work (/proc/PID/schedstat and status, rusage, io.stat,\n\
         blkio, cpuacct, /proc/stat), with other work going on beside it. They demand equality, less\n\
         what a command's first process does after it has read its own account.\n\n\
         **ok**: attached, or agrees with the kernel. **–**: not needed, an alternative is attached.\n\
         {own}\n\n\
         ## Hooks and checks\n\n{}\n\
         ## What is absent, and why\n\n{}\n\
         ## One job, number by number\n\n\
         Job 71 of an agent's four, with everything (busy processes, page faults, direct and\n\
         buffered I/O, sleeps, short-lived children). The kernel's own number is known but for the\n\
         moment at which the first process entered the job's cgroup: from … to. Times in ns.\n\n{}",
        markdown(columns),
        match reasons(columns) {
            empty if empty.is_empty() => "Nothing.\n".to_owned(),
            some => some,
        },
        samples(columns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: Vec<Line>, broken: Option<&str>) -> Told {
        Told { lines, broken: broken.map(str::to_owned), lost: LostBoots { early: 2, late: 0 } }
    }

    fn begin() -> Line {
        Line::Begin { release: "6.1.0-50-cloud-amd64".into(), machine: "x86_64".into() }
    }

    #[test]
    fn a_hook_that_should_be_there_and_is_not_has_failed() {
        let hook =
            |outcome| Line::Hook { program: "sched_switch".into(), outcome, why: "no".into() };
        let absent = told(vec![begin(), hook(Outcome::Absent), Line::End], None);
        assert_eq!(Column::new("6.1", Cgroups::V2, absent, 1.0).failures(), 1);
        let there = told(vec![begin(), hook(Outcome::Ok), Line::End], None);
        assert_eq!(Column::new("6.1", Cgroups::V2, there, 1.0).failures(), 0);
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
            assert_eq!(columns[0].failures(), failures, "{machine}");
            assert!(reasons(&columns).contains("no tracepoint page_fault_kernel"));
        }
    }

    #[test]
    fn what_failed_is_told_and_not_what_was_well() {
        let lines = vec!["ok   a: ours 1".to_owned(), "FAIL b: ours 2".to_owned()];
        let check = Line::Check { check: "forks".into(), outcome: Outcome::Failed, lines };
        let column =
            Column::new("6.1", Cgroups::V2, told(vec![begin(), check, Line::End], None), 1.0);
        assert_eq!(reasons(&[column]), "- `forks`: FAIL b: ours 2 (6.1.0 v2)\n");
    }

    #[test]
    fn each_architecture_has_a_document_of_its_own() {
        let texts = Arch::ALL.map(|arch| document(arch, &[]));
        assert!(texts[0].starts_with("# Kernels\n") && texts[0].contains("(KERNELS-arm64.md)"));
        assert!(texts[1].contains("--arch arm64 --write") && texts[1].contains("(KERNELS.md)"));
    }

    #[test]
    fn a_check_that_does_not_end_has_failed() {
        let lines = vec![begin(), Line::Start { check: "sleeps".into() }];
        let column = Column::new("6.1", Cgroups::V1, told(lines, Some("the machine ended")), 1.0);
        assert_eq!(column.failures(), 1);
        assert!(column.findings(false).contains("sleeps: FAILED"));
        let between = Column::new("6.1", Cgroups::V1, told(vec![begin()], Some("it ended")), 1.0);
        assert_eq!(between.failures(), 1);
    }

    #[test]
    fn tables_name_kernel_and_cgroups() {
        let lines = vec!["ok   forks: ours 3, kernel's 3, allowed 3 to 3".to_owned()];
        let check = Line::Check { check: "forks".into(), outcome: Outcome::Ok, lines };
        let column =
            Column::new("6.1", Cgroups::V1, told(vec![begin(), check, Line::End], None), 1.0);
        let text = markdown(&[column]);
        assert!(text.contains("| boots lost before the guest ran | 2 |"), "{text}");
        assert!(text.contains("| check | 6.1.0 v1 |\n|---|---|\n| forks | ok |\n"), "{text}");
        let line = "ok   a b: ours 3, kernel's 3 to 4, allowed 1 to 5";
        assert_eq!(parts(line), Some(("a b", "3", "3 to 4")));
    }
}
