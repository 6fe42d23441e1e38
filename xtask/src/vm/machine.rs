//! The emulated machine: qemu without KVM, so that every host will do, its console in a file and the
//! guest's lines on its standard output. What it is made of is `arch`'s.

use super::Cgroups;
use super::emulator;
use super::initramfs::Contents;
use super::kernels::Kernel;
use crate::process::{in_words, relative, say};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use xtask::guest::{self, CGROUPS, CHECKS, Line, Outcome, PORT, WORK, Work};

/// CPUs of a machine.
pub const CPUS: u32 = 2;
/// Linux 6.12 crashes under emulation about every second time, before the first process runs and so
/// before any code of ours; another attempt is fair then, and only then.
const ATTEMPTS: u32 = 8;
/// Bytes of memory, as qemu takes them.
const MEMORY: &str = "1536M";
/// How long the machine may take to go once the guest has said its last line.
const GOING: Duration = Duration::from_secs(10);
/// A machine that says nothing for so long runs nothing any more: a check that takes 300 s has the console told by then
/// what runs (`tests/src/bin/vm_guest/stuck.rs`). Seen once in Linux 5.10, with nothing on the console.
const SILENCE: Duration = Duration::from_secs(420);
/// Of the console, in a message.
const CONSOLE_LINES: usize = 15;

/// A boot to make.
pub struct Boot<'a> {
    /// What to boot.
    pub kernel: &'a Kernel,
    /// What the guest mounts.
    pub cgroups: Cgroups,
    /// What it does.
    pub work: Work,
    /// The only checks it makes, by the beginnings of their names; all where there is none.
    pub checks: &'a [String],
    /// What it is made of.
    pub contents: &'a Contents,
    /// CPUs the machine could have; [`CPUS`] of them run.
    pub possible_cpus: u32,
    /// How long it may take.
    pub patience: Duration,
}

/// All that a guest said, and why it stopped where it did so too early.
pub struct Told {
    /// Its lines.
    pub lines: Vec<Line>,
    /// Why the last is not [`Line::End`].
    pub broken: Option<String>,
    /// Whether it said nothing for long before that.
    pub is_silent: bool,
    /// Boots before it that count for nothing.
    pub lost: LostBoots,
}

/// Boots that crashed and were made again.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct LostBoots {
    /// Before the guest's first process.
    pub early: u32,
    /// Later, in what is known of the emulator.
    pub late: u32,
}

impl Boot<'_> {
    /// Boots, again where the kernel crashed before the guest ran.
    ///
    /// # Errors
    /// When the machine cannot be started, or never came as far as the guest.
    pub fn run(&self) -> Result<Told> {
        let folder = super::folder()?;
        let name = self.name();
        let (initramfs, console) =
            (folder.join(format!("{name}.cpio")), folder.join(format!("{name}.console")));
        self.contents.write(self.kernel, &initramfs)?;
        let mut lost = LostBoots::default();
        let mut was_stuck = false;
        for attempt in 1..=ATTEMPTS {
            say(format_args!("{}: boot", self.name()));
            let mut told = self.once(&initramfs, &console)?;
            told.lost = lost;
            let ran = !told.lines.is_empty();
            if told.broken.is_some() && emulator::erred(self.kernel.arch, &text_of(&console)) {
                say(format_args!(
                    "{}: attempt {attempt} crashed where the emulator is known to err: again",
                    self.name()
                ));
                *if ran { &mut lost.late } else { &mut lost.early } += 1;
                continue;
            }
            let text = text_of(&console);
            let is_stuck =
                text.contains(emulator::STUCK) || told.is_silent && !text.contains(guest::NOT_DONE);
            if told.broken.is_some() && !was_stuck && is_stuck {
                was_stuck = true;
                let kept = console.with_extension("stuck");
                std::fs::rename(&console, &kept)
                    .with_context(|| format!("keep {}", kept.display()))?;
                say(format_args!(
                    "{}: attempt {attempt} was stuck in the kernel, what it said is in {}: once more",
                    self.name(),
                    relative(&kept)
                ));
                *if ran { &mut lost.late } else { &mut lost.early } += 1;
                continue;
            }
            if ran {
                // Some tens of megabytes each.
                let _ = std::fs::remove_file(&initramfs);
                return Ok(told);
            }
            lost.early += 1;
            say(format_args!("{}: attempt {attempt} ended before the guest ran", self.name()));
        }
        bail!(
            "kernel {} crashed {ATTEMPTS} times; {} ends with:\n{}",
            self.kernel.name,
            console.display(),
            super::tail(&console, CONSOLE_LINES)
        )
    }

    fn command(&self, initramfs: &Path, console: &Path) -> Command {
        let arch = self.kernel.arch;
        let mut command = arch.qemu(console);
        command.args(["-smp", &format!("{CPUS},maxcpus={}", self.possible_cpus), "-m", MEMORY]);
        command.arg("-kernel").arg(&self.kernel.image).arg("-initrd").arg(initramfs);
        // A crash ends the machine instead of leaving it hanging.
        let checks = match self.checks.join(",").replace(' ', "_") {
            all if all.is_empty() => all,
            some => format!("{CHECKS}={some} "),
        };
        let line = format!(
            "console={} panic=-1 softlockup_panic=1 quiet {CGROUPS}={} {WORK}={} {PORT}={} {checks}{}",
            arch.console(),
            self.cgroups.name(),
            self.work.name(),
            arch.port(),
            self.contents.environment()
        );
        command.args(["-append", &line]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    /// Kernel, cgroups and, where they are many, possible CPUs: for messages and files.
    fn name(&self) -> String {
        let many = if self.possible_cpus == CPUS {
            String::new()
        } else {
            format!("-{}", self.possible_cpus)
        };
        format!("{}-{}{many}", self.kernel.name, self.cgroups.name())
    }

    /// Says what the guest has done, with the seconds since the line before.
    fn progress(&self, line: &Line, since: &mut Instant) {
        let seconds = since.elapsed().as_secs_f64();
        match line {
            Line::Begin { release, machine } => {
                say(format_args!("{}: {release} {machine} runs after {seconds:.1} s", self.name()));
            }
            Line::Check { check, outcome, .. } => {
                let word = match outcome {
                    Outcome::Ok => "ok",
                    Outcome::Unneeded => "unneeded",
                    Outcome::Absent => "absent",
                    Outcome::Failed => "FAILED",
                };
                say(format_args!("{}: {check}: {word} in {seconds:.1} s", self.name()));
            }
            Line::Size(size) => say(format_args!("{}: {size:?} in {seconds:.1} s", self.name())),
            Line::Hook { .. } | Line::Start { .. } | Line::End => return,
        }
        *since = Instant::now();
    }

    /// One attempt; no line where the guest never ran.
    fn once(&self, initramfs: &Path, console: &Path) -> Result<Told> {
        let mut command = self.command(initramfs, console);
        let child = command.spawn().with_context(|| format!("start {}", in_words(&command)))?;
        let mut machine = Machine(child);
        let lines = machine.lines()?;
        let end = Instant::now() + self.patience;
        let mut told =
            Told { lines: Vec::new(), broken: None, is_silent: false, lost: LostBoots::default() };
        let mut since = Instant::now();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            // Before its first line it boots, which may take as long as it likes.
            let may_be_silent = if told.lines.is_empty() { left } else { left.min(SILENCE) };
            match lines.recv_timeout(may_be_silent) {
                Ok(text) => {
                    let line: Line = serde_json::from_str(&text)
                        .with_context(|| format!("the guest said {text:?}"))?;
                    self.progress(&line, &mut since);
                    told.lines.push(line);
                    if told.lines.last() == Some(&Line::End) {
                        machine.wait(GOING);
                        return Ok(told);
                    }
                }
                Err(reason) => {
                    let why = match reason {
                        RecvTimeoutError::Timeout if may_be_silent < left => {
                            told.is_silent = true;
                            format!("said nothing for {} s", SILENCE.as_secs())
                        }
                        RecvTimeoutError::Timeout => {
                            format!("not done within {} s", self.patience.as_secs())
                        }
                        RecvTimeoutError::Disconnected => "the machine ended".to_owned(),
                    };
                    machine.wait(Duration::ZERO);
                    let last = super::tail(console, CONSOLE_LINES);
                    told.broken = Some(format!("{why}; {} ends with:\n{last}", relative(console)));
                    return Ok(told);
                }
            }
        }
    }
}

/// What is on the console.
fn text_of(console: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(console).unwrap_or_default()).into_owned()
}

/// A machine that ends with its value.
struct Machine(Child);

impl Machine {
    fn lines(&mut self) -> Result<Receiver<String>> {
        let (sender, lines) = channel();
        let output = BufReader::new(self.0.stdout.take().context("no output of qemu")?);
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(lines)
    }

    /// Waits for its end, and ends it where it takes longer.
    fn wait(&mut self, patience: Duration) {
        let begin = Instant::now();
        while begin.elapsed() < patience && matches!(self.0.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.wait(Duration::ZERO);
    }
}
