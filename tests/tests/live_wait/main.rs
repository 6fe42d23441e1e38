//! Live ring: what tasks wait for, by cause. Programs of one cause each (`src/bin/wait`), whose waits are known
//! from their own account, with the same work going on beside the job.
//!
//! In every test the causes add up to `sleep_ns` and `blocked_ns` exactly.

mod asleep;
mod blocked;
mod files;
mod held;
mod modes;
mod odd;

use std::path::Path;

use jobtrace_tests::{
    account::Report,
    agree::{Agreement, MS, tried_again},
    causes::Causes,
    sibling::Sibling,
    traced::Traced,
    work::Pages,
};

const WAIT: &str = env!("CARGO_BIN_EXE_wait");
/// Waits of a workload, and milliseconds of each.
const COUNT: u64 = 30;
const TIME_MS: u64 = 10;
/// Waits that are not the workload's own: of its start and its end, of a second request for one call.
const MORE_WAITS: u64 = 2 * COUNT;

/// What a workload of ours waited for, and what it said.
struct Found {
    report: Report,
    causes: Causes,
}

/// Traces `wait CAUSE COUNT TIME_MS PATH`, while another does the same on the path `beside`.
fn found(cause: &str, path: &str, beside: &str) -> Found {
    found_amount(cause, COUNT, TIME_MS, [path, beside])
}

/// The same of other amounts.
fn found_amount(cause: &str, count: u64, ms: u64, paths: [&str; 2]) -> Found {
    let (job, report) = traced(&[], cause, count, ms, paths);
    let causes = Causes::of(&job);
    causes.print();
    Found { report, causes }
}

/// The same with `options` of jobtrace's.
fn traced(
    options: &[&str],
    cause: &str,
    count: u64,
    ms: u64,
    [path, beside]: [&str; 2],
) -> (Traced, Report) {
    // Reading its own program from the disk would block it too.
    let _held = Pages::held_file(Path::new(WAIT));
    let [count, few, ms] = [count, count.div_ceil(6), ms].map(|value| value.to_string());
    let sibling = Sibling::start(&[WAIT, cause, &few, &ms, beside]);
    let traced = Traced::report(options, &[WAIT, cause, &count, &ms, path]);
    sibling.end();
    traced
}

impl Found {
    /// What holds for every job: the causes add up, and all that was waited is somewhere.
    fn adds_up(&self) -> Agreement {
        let mut agree = Agreement::new();
        self.causes.add_up(&mut agree);
        agree
    }

    /// Waits of `causes` are those that the workload knows of, and hardly anything else is waited for.
    fn is_all(&self, agree: &mut Agreement, causes: &[&str]) {
        let [off, least, stolen] =
            ["off_cpu_ns", "least_ns", "stolen_ns"].map(|name| self.report.fact(name));
        let waits =
            jobtrace_tests::causes::sum(causes.iter().map(|name| self.causes.of_cause(name)));
        // Who has to wait for its own CPU begins to wait for others late.
        agree.between("off_cpu_ns, known", off, least / 3..=u64::MAX);
        // Of all CPUs: more than that, and it was not the workload's alone.
        let stolen = stolen.min(off / 4);
        agree.near(&format!("{causes:?}"), waits.ns, off - stolen..=off, 2, 2 * MS);
        // Who joins the job's cgroups, one after the other, waits too once it is in the first.
        let of_cgroups = self.causes.for_files("write", |fs, _| fs.starts_with("cgroup")).ns;
        let apart_ns = self.report.fact("apart_ns").max(of_cgroups);
        self.causes.are_mostly(agree, causes, apart_ns);
    }

    /// Each wait is one of `cause`: this kernel withholds some switches (0 to 1.4 %).
    fn is_each(&self, agree: &mut Agreement, cause: &str) {
        let count = self.causes.of_cause(cause).count;
        agree.between(&format!("{cause}_waits"), count, COUNT - 2..=COUNT + MORE_WAITS);
    }
}

/// A workload whose waits end by themselves: one cause.
fn of_one_cause(name: &str, cause: &str) {
    tried_again(|| {
        let found = found(name, "", "");
        let mut agree = found.adds_up();
        found.is_all(&mut agree, &[cause]);
        found.is_each(&mut agree, cause);
        agree.end();
    });
}

/// One that waits for other tasks: where all CPUs are busy these may be done before it begins to wait.
fn of_others(name: &str, cause: &str) {
    tried_again(|| {
        let found = found(name, "", "");
        let mut agree = found.adds_up();
        found.is_all(&mut agree, &[cause]);
        let count = found.causes.of_cause(cause).count;
        agree.between(&format!("{cause}_waits"), count, 1..=COUNT + MORE_WAITS);
        agree.end();
    });
}
