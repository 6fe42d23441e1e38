//! Programs that do nothing, on the hooks that tracers use: their figures are taken in the same run as the
//! tracer's, since the kernel's statistics add about 50 ns to each run of either.

use super::workload::Kind;
use crate::bpf;
use crate::process::target_dir;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A hook that tracers use.
#[derive(Debug, PartialEq, Eq)]
pub struct Hook {
    /// The kernel's name of the tracepoint, or of the program of ours where it is none.
    pub name: &'static str,
    /// The family of events that it belongs to.
    pub kind: Kind,
    /// What the names of programs on it have in them; the kernel keeps 15 bytes of a name.
    in_names: &'static str,
    /// Whether jobtrace has a program there in its full mode.
    is_ours: bool,
}

const fn hook(name: &'static str, kind: Kind, in_names: &'static str, is_ours: bool) -> Hook {
    Hook { name, kind, in_names, is_ours }
}

/// The more telling names first: that of `sched_wakeup_new` has the other's in it.
pub const HOOKS: [Hook; 10] = [
    hook("sched_switch", Kind::Switch, "sched_s", true),
    hook("sched_wakeup_new", Kind::Switch, "wakeup_n", false),
    hook("sched_wakeup", Kind::Switch, "sched_w", false),
    hook("page_fault_user", Kind::Fault, "page_fault", true),
    hook("minor_fault_latency", Kind::Fault, "minor_fault", true),
    hook("block_rq_insert", Kind::Block, "rq_ins", false),
    hook("block_rq_issue", Kind::Block, "rq_iss", false),
    hook("block_rq_complete", Kind::Block, "rq_comp", true),
    hook("sock_send_length", Kind::Message, "sock_send", true),
    hook("sock_recv_length", Kind::Message, "sock_recv", true),
];

/// What else is in names of programs that events of another kind run: no empty program shares their
/// hooks.
const OTHERS: [(&str, Kind); 5] = [
    ("fault", Kind::Fault),
    ("sched_p", Kind::Agent),
    ("cgroup_", Kind::Agent),
    ("inet_sock", Kind::Message),
    ("tcp_", Kind::Message),
];

/// The hook of a tracer's program, told by its name.
pub fn hook_of(program: &str) -> Option<&'static Hook> {
    HOOKS.iter().find(|hook| program.contains(hook.in_names))
}

/// The kind of events that run a tracer's program, told by its name.
pub fn kind_of(program: &str) -> Option<Kind> {
    let other = || OTHERS.into_iter().find(|(in_names, _)| program.contains(in_names));
    hook_of(program).map(|hook| hook.kind).or_else(|| other().map(|(_, kind)| kind))
}

/// The tracepoint that happens once for each event of the kind.
pub fn counter_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Fault => "page_fault_user",
        Kind::Block => "block_rq_complete",
        Kind::Message => "sock_send_length",
        _ => "sched_switch",
    }
}

/// How often something ran, and how long in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// How often.
    pub count: u64,
    /// How long in all.
    pub time_ns: u64,
}

impl Runs {
    /// Nanoseconds of a run.
    pub fn mean_ns(self) -> Option<f64> {
        (self.count > 0).then(|| self.time_ns as f64 / self.count as f64)
    }
}

/// What empty programs ran, by the name of their hook.
pub type Floor = BTreeMap<String, Runs>;

/// A running `jobtrace bench-empty`, whose contract is: it attaches a program that does nothing to the hook
/// of each of our programs that events run, and to the tracepoints that it is given, leaving out with a word on
/// standard error those that the kernel lacks; prints one line
/// `ID NAME` for each, ID being the empty program's and NAME that of the tracepoint, or of the program of
/// ours where it is none; then the line `ready`; holds them until its standard input ends; and exits with 0.
pub struct Empties {
    process: Child,
    hooks: BTreeMap<u32, String>,
}

impl Empties {
    /// On the hooks that jobtrace has programs on.
    ///
    /// # Errors
    /// When they cannot be attached.
    pub fn on_ours() -> Result<Self> {
        Self::of(&release(), &[])
    }

    /// On those that peers use, too.
    ///
    /// # Errors
    /// When they cannot be attached.
    pub fn on_all() -> Result<Self> {
        let others = HOOKS.iter().filter(|hook| !hook.is_ours).map(|hook| hook.name);
        Self::of(&release(), &others.collect::<Vec<_>>())
    }

    /// Those of `jobtrace`, on the hooks that it has programs on and on the tracepoints `more`.
    ///
    /// # Errors
    /// When they cannot be attached.
    pub fn of(jobtrace: &Path, more: &[&str]) -> Result<Self> {
        let mut command = Command::new(jobtrace);
        command.arg("bench-empty").args(more).stdin(Stdio::piped()).stdout(Stdio::piped());
        let process = command.spawn().context("start `jobtrace bench-empty`")?;
        let mut empties = Self { process, hooks: BTreeMap::new() };
        let stdout = empties.process.stdout.take().context("it has no output")?;
        for line in BufReader::new(stdout).lines() {
            let line = line.context("read from `jobtrace bench-empty`")?;
            if line == "ready" {
                return Ok(empties);
            }
            let (id, hook) = line.split_once(' ').unwrap_or_default();
            let id = id.parse().with_context(|| format!("`jobtrace bench-empty`: `{line}`"))?;
            empties.hooks.insert(id, hook.to_owned());
        }
        bail!("`jobtrace bench-empty` ended before it was ready")
    }

    /// What each has run so far, with statistics on.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn read_runs(&self) -> Result<Floor> {
        let all = bpf::programs()?;
        let mut floor = Floor::new();
        for (id, hook) in &self.hooks {
            let program = all.get(id).with_context(|| format!("the empty {hook} is gone"))?;
            let runs = Runs { count: program.run_count, time_ns: program.run_time_ns };
            floor.insert(hook.clone(), runs);
        }
        Ok(floor)
    }

    /// What each has run since `before`.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn read_since(&self, before: &Floor) -> Result<Floor> {
        let mut floor = self.read_runs()?;
        for (hook, runs) in &mut floor {
            let before = before.get(hook).copied().unwrap_or_default();
            runs.count -= before.count;
            runs.time_ns -= before.time_ns;
        }
        Ok(floor)
    }
}

fn release() -> PathBuf {
    target_dir().join("release/jobtrace")
}

impl Drop for Empties {
    fn drop(&mut self) {
        // It ends by itself when its input does.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_their_names() {
        let hook = |name| hook_of(name).map(|hook| hook.name);
        for (program, expected) in [
            ("sched_switch", "sched_switch"),
            ("sched_switch_btf", "sched_switch"),
            ("handle__sched_s", "sched_switch"),
            ("handle__sched_w", "sched_wakeup"),
            ("sched_wakeup", "sched_wakeup"),
            ("sched_wakeup_ne", "sched_wakeup_new"),
            ("block_rq_issue_", "block_rq_issue"),
            ("block_rq_comple", "block_rq_complete"),
            ("page_fault_user", "page_fault_user"),
            ("minor_fault_lat", "minor_fault_latency"),
            ("major_fault_lat", "none"),
            ("sock_send_lengt", "sock_send_length"),
            ("sock_recv_lengt", "sock_recv_length"),
            ("inet_sock_set_s", "none"),
        ] {
            assert_eq!(hook(program).unwrap_or("none"), expected, "{program}");
        }
        assert_eq!(kind_of("major_fault_lat"), Some(Kind::Fault));
        assert_eq!(kind_of("sched_process_f"), Some(Kind::Agent));
        assert_eq!(kind_of("inet_sock_set_s"), Some(Kind::Message));
        assert_eq!(kind_of("vfs_read"), None);
    }
}
