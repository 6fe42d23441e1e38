//! What `jobtrace run --io` adds to a call: of its job, of any other task, and of either beside programs that do
//! nothing at both ends of a call. In turns, so that what else the machine does meets all alike.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use xtask::{machine, markdown::Table, root, sections};

use super::attached::Attached;
use super::empties::Empties;
use super::pairs::spread;
use super::quiet;
use super::workloads::last_cpu;
use super::{io_jobs, io_memory};
use crate::packages;
use crate::process::{build_jobtrace, is_root, output, run as run_command, say, target_dir};

/// Rounds of all four.
const ROUNDS: usize = 11;
/// Calls of a kind in each.
const CALLS: u32 = 210_000;
/// What may be added to a call: of the job, and of another task beyond what empty programs take.
const MOST_JOBS_NS: f64 = 450.0;
const MOST_OTHERS_NS: f64 = 5.0;
/// The call that is no operation on files, and the one that is two.
const NO_FILE: &str = "getppid";
const TWO_CALLS: &str = "open and close";

/// What stands before what was told.
const TOLD: &str = "\
What each tells of one run. Ours and strace's is all of the job, with what the dynamic loader and fio itself open and read;
Darshan's is without: it leaves out /proc, /sys, /etc and the libraries' folders.";

/// Nanoseconds by what was called, in the program's order.
type Times = Vec<(String, f64)>;

/// Measures and prints it; into docs/OVERHEAD.md where `write`.
///
/// # Errors
/// When we are not root, or a program cannot be attached.
pub fn run(write: bool) -> Result<()> {
    if !is_root() {
        bail!(
            "tracers load BPF programs: run `sudo env \"PATH=$PATH\" cargo xtask bench --only io`"
        );
    }
    packages::need(packages::WORKLOADS)?;
    packages::need(&[packages::STRACE])?;
    quiet::refuse_statistics()?;
    quiet::name_disturbances()?;
    // What runs in the kernel is the same in every profile.
    let jobtrace = build_jobtrace(false)?;
    let scratch = tempfile::tempdir_in(target_dir()).context("make a scratch folder")?;
    let memory = io_memory::measure(&jobtrace, scratch.path())?.to_string();
    print!("{memory}");
    let loads = Loads::compile(scratch.path())?;
    let mut all: [BTreeMap<usize, Vec<f64>>; 4] = Default::default();
    let mut names = Vec::new();
    for round in 0..ROUNDS {
        let bare = loads.times(None)?;
        let with_empty = {
            let _empties = Empties::of(&jobtrace, &["sys_enter", "sys_exit"])?;
            loads.times(None)?
        };
        let beside = {
            let beside = Beside::start(&jobtrace, scratch.path())?;
            let times = loads.times(None)?;
            beside.end()?;
            times
        };
        let inside = loads.times(Some(&jobtrace))?;
        for (of, times) in all.iter_mut().zip([&bare, &with_empty, &beside, &inside]) {
            for (call, (_, ns)) in times.iter().enumerate() {
                of.entry(call).or_default().push(*ns);
            }
        }
        names = bare.into_iter().map(|(name, _)| name).collect();
        say(format_args!("round {} of {ROUNDS}", round + 1));
    }
    let machine = machine::describe()?;
    let text = format!("{machine}; {ROUNDS} rounds.\n\n{}", table(&names, &all));
    print!("{text}");
    let [jobs, told] = io_jobs::measure(&jobtrace, &loads, scratch.path())?;
    let jobs = format!("{machine}.\n\n{jobs}\n{TOLD}\n\n{told}");
    print!("{jobs}");
    let all = [("io", text), ("io_jobs", jobs), ("io_memory", memory)];
    if write { sections::write("docs/OVERHEAD.md", &all) } else { Ok(()) }
}

/// Medians: a call without anything, and what each adds to it, round by round.
fn table(names: &[String], all: &[BTreeMap<usize, Vec<f64>>; 4]) -> Table {
    let [bare, ..] = all;
    let mut table = Table::new(
        "call | >without, ns | >empty programs | >another job's task | >over empty ones | >the job",
    );
    for (call, name) in names.iter().enumerate() {
        let added = |of: &BTreeMap<usize, Vec<f64>>, to: &BTreeMap<usize, Vec<f64>>| {
            let pairs = of[&call].iter().zip(&to[&call]);
            spread(pairs.map(|(on, off)| on - off)).map_or(f64::NAN, |spread| spread.median)
        };
        let base = spread(bare[&call].iter().copied()).map_or(f64::NAN, |spread| spread.median);
        let calls = if name.starts_with(TWO_CALLS) { 2.0 } else { 1.0 };
        let (over, inside) = (added(&all[2], &all[1]), added(&all[3], bare));
        let met = |is_met: bool| if is_met { "" } else { " (goal missed)" };
        let is_file = !name.starts_with(NO_FILE);
        let jobs_met = !is_file || inside <= calls * MOST_JOBS_NS;
        table.row([
            name,
            &format!("{base:.0}"),
            &format!("{:+.0}", added(&all[1], bare)),
            &format!("{:+.0}", added(&all[2], bare)),
            &format!("{over:+.0}{}", met(over <= calls * MOST_OTHERS_NS)),
            &format!("{inside:+.0}{}", met(jobs_met)),
        ]);
    }
    table
}

/// The program of `io_loads.rs`, compiled, and what it is called with.
pub struct Loads {
    program: PathBuf,
    file: PathBuf,
    cpu: String,
}

impl Loads {
    fn compile(scratch: &Path) -> Result<Self> {
        let (program, file) = (scratch.join("io_loads"), scratch.join("file"));
        std::fs::write(&file, []).context("make a file to read")?;
        let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc.args(["--edition=2024", "-O", "-o"]).arg(&program);
        run_command(rustc.arg(root().join("xtask/src/bench/io_loads.rs")))?;
        Ok(Self { program, file, cpu: last_cpu()?.to_string() })
    }

    /// Nanoseconds that the program, with `before` before it, takes to open, read and close one of `count` small files
    /// in a folder of `scratch`, which it makes if they are not there.
    ///
    /// # Errors
    /// When it fails.
    pub fn files(&self, before: &[&str], count: u32, scratch: &Path) -> Result<f64> {
        let folder = scratch.join("files");
        let words = [self.program.as_path(), Path::new(&self.cpu), folder.as_path()];
        let words: Option<Vec<_>> = words.into_iter().map(Path::to_str).collect();
        let words = words.context("a path that is no text")?;
        let told = io_jobs::run(
            before,
            &[&words[..2], &[&count.to_string(), words[2], "files"]].concat(),
        )?;
        let time = told.lines().find_map(parse).context("io_loads printed no time")?;
        Ok(time.1)
    }

    /// Times of all calls, of a task of the job that `jobtrace` runs where it is given.
    fn times(&self, jobtrace: Option<&Path>) -> Result<Times> {
        let mut command = Command::new(jobtrace.unwrap_or(&self.program));
        if jobtrace.is_some() {
            command.args(["run", "--io", "--quiet", "--"]).arg(&self.program);
        }
        let text = output(command.args([&*self.cpu, &CALLS.to_string()]).arg(&self.file))?;
        let times: Option<Times> = text.lines().map(parse).collect();
        let times = times.filter(|times| !times.is_empty());
        times.with_context(|| format!("io_loads printed no times: {text}"))
    }
}

fn parse(line: &str) -> Option<(String, f64)> {
    let (ns, what) = line.split_once('\t')?;
    Some((what.to_owned(), ns.parse().ok()?))
}

/// Another's job that is counted meanwhile.
pub struct Beside(Attached);

impl Beside {
    /// Starts one that sleeps.
    ///
    /// # Errors
    /// When jobtrace does not attach its programs.
    pub fn start(jobtrace: &Path, scratch: &Path) -> Result<Self> {
        let mut command = Command::new(jobtrace);
        command.args(["run", "--io", "--quiet", "--", "sleep", "600"]);
        Attached::start(command, scratch, true).map(Self)
    }

    /// Ends jobtrace as a user would, so that its command and cgroup go with it.
    ///
    /// # Errors
    /// When it has ended before, or does not end.
    pub fn end(self) -> Result<()> {
        end(self.0)
    }
}

/// Ends `jobtrace` as a user would.
///
/// # Errors
/// When it has ended before, or does not end.
pub fn end(mut jobtrace: Attached) -> Result<()> {
    jobtrace.is_alive()?;
    let pid = i32::try_from(jobtrace.process().id()).context("a pid")?;
    let pid = rustix::process::Pid::from_raw(pid).context("a pid")?;
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).context("end jobtrace")?;
    let begin = std::time::Instant::now();
    while jobtrace.is_alive().is_ok() {
        ensure!(begin.elapsed().as_secs() < 10, "jobtrace did not end");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_print_times_that_can_be() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let loads = Loads::compile(scratch.path()).expect("rustc is here: it built this");
        let times = loads.times(None).expect("it runs");
        assert_eq!(times.len(), 6);
        assert!(times.iter().all(|(_, ns)| (1.0..1e6).contains(ns)), "{times:?}");
        assert!(times[0].0.starts_with(NO_FILE) && times[5].0 == TWO_CALLS);
        let ns = loads.files(&[], 20, scratch.path()).expect("it makes its files");
        assert!((100.0..1e8).contains(&ns), "{ns}");
    }

    #[test]
    fn a_missed_goal_is_said() {
        let of = |ns: f64| BTreeMap::from([(0, vec![ns; 3])]);
        let text = |times: [f64; 4]| table(&["stat".to_owned()], &times.map(of)).to_string();
        assert!(!text([1000.0, 1140.0, 1144.0, 1449.0]).contains("missed"));
        assert!(text([1000.0, 1140.0, 1146.0, 1449.0]).contains("+6 (goal missed) |"));
        assert!(text([1000.0, 1140.0, 1144.0, 1451.0]).contains("+451 (goal missed) |"));
    }
}
