//! The emulated machine: qemu without KVM, so that every host will do, its console in a file and the
//! guest's lines on its standard output. What it is made of is `arch`'s.

use super::Cgroups;
use super::arch::Arch;
use super::initramfs::Contents;
use super::kernels::Kernel;
use crate::process::{in_words, relative, say};
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use xtask::guest::{CGROUPS, CHECKS, Line, Outcome, PORT, WORK, Work};

/// CPUs of a machine.
pub const CPUS: u32 = 2;
/// Linux 6.12 crashes under emulation about every second time, before the first process runs and so
/// before any code of ours; another attempt is fair then, and only then.
const ATTEMPTS: u32 = 8;
/// Words of the console by which a crash of an x86-64 machine is the emulator's, both seen in qemu 7.2. With Linux 6.12,
/// cmpxchg16b on per-CPU data, in the memory allocator, leaves bits of a pointer in the flags. With
/// 6.12 and 7.2, a CPU runs into the breakpoint by which the kernel patches its own code (as attaching
/// to a tracepoint does) after it is gone again.
const EMULATORS: [&str; 2] = [" 65 48 0f c7 ", "Oops: int3"];
/// Words of the console of a machine whose CPUs were stuck in the kernel. Seen once in Linux 5.10, both CPUs at
/// once and answering timers, as where one waits for an interrupt from the other that the emulator lost: one more
/// attempt is fair. Programs of ours that lock up would do so again.
const STUCK: &str = "softlockup: hung tasks";
/// Bytes of memory, as qemu takes them.
const MEMORY: &str = "1536M";
/// How long the machine may take to go once the guest has said its last line.
const GOING: Duration = Duration::from_secs(10);
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
    /// Boots before it that count for nothing.
    pub lost: LostBoots,
}

/// Boots that crashed and were made again.
#[derive(Clone, Copy, Debug, Default)]
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
            if told.broken.is_some() && self.is_emulators(&console) {
                say(format_args!(
                    "{}: attempt {attempt} crashed where the emulator is known to err: again",
                    self.name()
                ));
                *if ran { &mut lost.late } else { &mut lost.early } += 1;
                continue;
            }
            if told.broken.is_some() && !was_stuck && text_of(&console).contains(STUCK) {
                was_stuck = true;
                let kept = console.with_extension("stuck");
                std::fs::rename(&console, &kept)
                    .with_context(|| format!("keep {}", kept.display()))?;
                say(format_args!(
                    "{}: attempt {attempt} was stuck in the kernel, {} says where: once more",
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

    /// Whether the kernel crashed where qemu is known to emulate wrongly.
    fn is_emulators(&self, console: &Path) -> bool {
        let text = text_of(console);
        self.kernel.arch == Arch::X86
            && text.contains("Kernel panic")
            && (EMULATORS.iter().any(|words| text.contains(words)) || is_stuck_at_patch(&text))
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
        let mut told = Told { lines: Vec::new(), broken: None, lost: LostBoots::default() };
        let mut since = Instant::now();
        loop {
            match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
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

/// Whether a CPU was stuck at an instruction that the kernel patches: the call at a function's begin, or the jump of
/// a static branch. It runs into the breakpoint of the patching, as in [`EMULATORS`], and the kernel, which sees that
/// it is gone, has it try again for ever.
fn is_stuck_at_patch(console: &str) -> bool {
    let mut lines = console.lines();
    let Some(place) = lines.find(|line| line.contains("RIP: 0010:")) else { return false };
    let code = lines.next().and_then(|line| line.split_once("Code: ")).map_or("", |(_, code)| code);
    let is_call = place.contains("+0x0/") && code.contains("<e8>");
    console.contains(STUCK) && (is_call || code.contains("<e9>") || code.contains("<0f> 1f 44 00"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_is_stuck_at_a_patched_instruction_is_the_emulators() {
        let is_patch = |place: &str, code: &str| {
            is_stuck_at_patch(&format!(
                "[   88.5] Kernel panic - not syncing: softlockup: hung tasks\n\
                 [   88.5] RIP: 0010:{place}\n[   88.5] Code: 00 00 {code} 54 76 03 53\n\
                 [   88.5]  ? inet_sk_set_state+0x0/0x60\n"
            ))
        };
        assert!(is_patch("inet_recvmsg+0x0/0x120", "<e8> bb"));
        assert!(!is_patch("inet_recvmsg+0x5/0x120", "<e8> bb"));
        assert!(is_patch("handle_mm_fault+0x73e/0x1c00", "<e9> 30"));
        assert!(is_patch("handle_mm_fault+0x73e/0x1c00", "<0f> 1f 44 00"));
        assert!(!is_patch("native_queued_spin_lock+0x0/0x120", "<f3> 90"));
    }
}
