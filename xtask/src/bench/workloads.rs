//! The workloads that every tracer is measured on.

use super::workload::{Kind, Printed, Workload};
use crate::process::run;
use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::root;

/// Size of the file that fio reads, and of the device.
pub const FILE_BYTES: u64 = 128 << 20;

/// What workloads read and write, and how long they are.
pub struct Site<'a> {
    /// A folder of ours on the build's disk.
    pub scratch: &'a Path,
    /// A device in RAM.
    pub device: &'a Path,
    /// As short as each runs at all, instead of about a second.
    pub quick: bool,
}

impl Site<'_> {
    /// The workloads of the wished kinds.
    ///
    /// # Errors
    /// When one cannot be prepared: no compiler, no room.
    pub fn workloads(&self, is_wished: impl Fn(Kind) -> bool) -> Result<Vec<Workload>> {
        let mut all = Vec::new();
        if is_wished(Kind::Switch) {
            all.extend([self.pipe()?, self.turns()?, self.threads()]);
        }
        if is_wished(Kind::Fault) {
            all.push(self.faults()?);
        }
        if is_wished(Kind::Block) {
            let file = self.scratch.join("file");
            fill(&file, FILE_BYTES)?;
            let name = "fio, 4 KiB O_DIRECT random reads of a file";
            all.push(fio("file", name, &file, 100)?);
            let name = "fio, 4 KiB O_DIRECT random reads of a loop device in RAM";
            all.push(fio("block", name, self.device, 1_000)?);
        }
        if is_wished(Kind::Message) {
            all.push(self.messages()?);
        }
        if is_wished(Kind::Compile) {
            all.push(self.compile()?);
        }
        if is_wished(Kind::Compute) {
            all.push(self.compute()?);
            all.push(self.steps(
                "steps-50us",
                "steps of about 50 µs, a thread pinned to each CPU, a barrier after each",
                [20_000, 40_000],
            )?);
            all.push(self.steps(
                "steps-1ms",
                "steps of about 1 ms, a thread pinned to each CPU, a barrier after each",
                [1_000, 1_000_000],
            )?);
        }
        Ok(all)
    }

    fn scale(&self, full: u32, quick: u32) -> u32 {
        if self.quick { quick } else { full }
    }

    fn pipe(&self) -> Result<Workload> {
        let trips = self.scale(250_000, 20_000);
        Ok(Workload {
            id: "pipe",
            name: "`perf bench sched pipe`, one CPU",
            kind: Kind::Switch,
            // Each is two switches; some kernels withhold a few from BPF.
            events: Some(u64::from(trips) * 2 * 95 / 100),
            command: on_last_cpu(&format!("perf bench --format=simple sched pipe -l {trips}"))?,
            printed: Printed::SecondsOf(trips.into()),
        })
    }

    fn turns(&self) -> Result<Workload> {
        let count = self.scale(500_000, 40_000);
        let mut command = on_last_cpu("")?;
        command.push(self.loads()?.into());
        command.extend(words(&format!("turns {count}")));
        Ok(Workload {
            id: "turns",
            name: "two threads that yield to each other, one CPU",
            kind: Kind::Switch,
            // A yield is no switch where the kernel finds that the thread may go on.
            events: Some(u64::from(count) / 4),
            command,
            printed: Printed::Nanoseconds,
        })
    }

    /// Two groups of 20 senders and 20 receivers; each sender sends to each receiver of its group.
    fn threads(&self) -> Workload {
        let loops = self.scale(1_000, 100);
        let line = format!("perf bench --format=simple sched messaging -t -p -g 2 -l {loops}");
        Workload {
            id: "threads",
            name: "`perf bench sched messaging`, 80 threads",
            kind: Kind::Switch,
            events: Some(80),
            command: words(&line),
            printed: Printed::SecondsOf(2.0 * 20.0 * 20.0 * f64::from(loops)),
        }
    }

    fn faults(&self) -> Result<Workload> {
        let rounds = self.scale(100, 10);
        let mut command = on_last_cpu("")?;
        command.push(self.loads()?.into());
        command.extend(words(&format!("faults {rounds}")));
        Ok(Workload {
            id: "faults",
            name: "minor faults, one CPU",
            kind: Kind::Fault,
            events: Some(u64::from(rounds) * 4096),
            command,
            printed: Printed::Nanoseconds,
        })
    }

    fn messages(&self) -> Result<Workload> {
        let rounds = self.scale(1_000_000, 50_000);
        let mut command = on_last_cpu("")?;
        command.push(self.loads()?.into());
        command.extend(words(&format!("messages {rounds}")));
        Ok(Workload {
            id: "messages",
            name: "messages of 64 bytes through a pair of unix sockets, one CPU",
            kind: Kind::Message,
            events: Some(rounds.into()),
            command,
            printed: Printed::Nanoseconds,
        })
    }

    fn compile(&self) -> Result<Workload> {
        let file = self.scratch.join("job.c");
        fs::write(&file, c_source(self.scale(120, 30))).context("write the C file to compile")?;
        // The time of the compiler alone: what surrounds the workload does not count.
        let script = "begin=$(date +%s%N); gcc -O2 -c -o \"$1.o\" \"$1\" || exit 1; \
                      end=$(date +%s%N); echo $((end - begin))";
        let mut command: Vec<OsString> = ["sh", "-c", script, "sh"].map(Into::into).into();
        command.push(file.into());
        Ok(Workload {
            id: "compile",
            name: "`gcc -O2` of a generated file",
            kind: Kind::Compile,
            events: None,
            command,
            printed: Printed::Nanoseconds,
        })
    }

    fn compute(&self) -> Result<Workload> {
        let mut command = vec![self.loads()?.into()];
        command.extend(words(&format!("matrix {}", self.scale(60, 10))));
        command.extend(usable_cpus()?.map(|cpu| OsString::from(cpu.to_string())));
        Ok(Workload {
            id: "compute",
            name: "matrix products, a thread pinned to each CPU, a barrier after each",
            kind: Kind::Compute,
            events: None,
            command,
            printed: Printed::Nanoseconds,
        })
    }

    /// So many steps of so many multiplications: a job that waits for its slowest thread all the time.
    fn steps(
        &self,
        id: &'static str,
        name: &'static str,
        [count, work]: [u32; 2],
    ) -> Result<Workload> {
        let mut command = vec![self.loads()?.into()];
        command.extend(words(&format!("steps {} {work}", self.scale(count, count / 50))));
        command.extend(usable_cpus()?.map(|cpu| OsString::from(cpu.to_string())));
        let (kind, events, printed) = (Kind::Compute, None, Printed::Nanoseconds);
        Ok(Workload { id, name, kind, events, command, printed })
    }

    /// The program of `loads.rs`, compiled.
    fn loads(&self) -> Result<PathBuf> {
        let program = self.scratch.join("loads");
        if !program.is_file() {
            let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
            rustc.args(["--edition=2024", "-O", "-o"]).arg(&program);
            run(rustc.arg(root().join("xtask/src/bench/loads.rs")))?;
        }
        Ok(program)
    }
}

/// The C file: functions with loops, branches and calls, so that the optimiser has work to do.
fn c_source(functions: u32) -> String {
    let mut text = String::from("unsigned f0(unsigned a, unsigned *b) { return a + b[0]; }\n");
    for n in 1..functions {
        let (callee, modulus, factor) = (n - 1, n % 13 + 3, n % 7 + 2);
        let _ = write!(
            text,
            "unsigned f{n}(unsigned a, unsigned *b) {{
  unsigned s = a;
  for (unsigned i = 0; i < a % 97; i++) {{
    switch ((s ^ i) % {modulus}) {{
    case 0: s += b[i % 64] * {factor}; break;
    case 1: s ^= f{callee}(i, b); break;
    default: s = (s << {factor}) | (s >> (32 - {factor})); b[s % 64] = i;
    }}
  }}
  return s;
}}
"
        );
    }
    text
}

fn fio(id: &'static str, name: &'static str, target: &Path, least: u64) -> Result<Workload> {
    let mut command = on_last_cpu(&format!(
        "fio --name=reads --rw=randread --bs=4k --direct=1 --ioengine=psync --readonly \
         --time_based --runtime=1 --size={FILE_BYTES} --output-format=json"
    ))?;
    let mut filename = OsString::from("--filename=");
    filename.push(target);
    command.push(filename);
    let (kind, events, printed) = (Kind::Block, Some(least), Printed::Fio);
    Ok(Workload { id, name, kind, events, command, printed })
}

/// The words of a command without quotes.
fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

fn on_last_cpu(line: &str) -> Result<Vec<OsString>> {
    Ok(words(&format!("taskset -c {} {line}", last_cpu()?)))
}

fn usable_cpus() -> Result<impl DoubleEndedIterator<Item = usize>> {
    let set = sched_getaffinity(None).context("read which CPUs we may use")?;
    Ok((0..CpuSet::MAX_CPU).filter(move |&cpu| set.is_set(cpu)))
}

/// The last CPU that we may use: the first takes most interrupts.
///
/// # Errors
/// When there is none.
pub fn last_cpu() -> Result<usize> {
    usable_cpus()?.next_back().context("no CPU to pin a workload to")
}

/// Writes `bytes` bytes that are not zero, so that no layer can make a hole of them.
///
/// # Errors
/// When there is no room.
fn fill(path: &Path, bytes: u64) -> Result<()> {
    let mut file = File::create(path).with_context(|| format!("make {}", path.display()))?;
    let mut pattern = std::io::Read::take(std::io::repeat(0x5a), bytes);
    std::io::copy(&mut pattern, &mut file)
        .and_then(|_| file.sync_all())
        .with_context(|| format!("fill {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_loads_print_times_that_can_be() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let site = Site { scratch: scratch.path(), device: Path::new("/d"), quick: true };
        let time = |load: Workload| load.time(&mut load.command(&[])).expect("it runs");
        // 2 x 256^3 floating-point operations: not in less than 10 us, not in more than 10 s.
        let step_ns = time(site.compute().expect("rustc is here: it built this"));
        assert!((1e4..1e10).contains(&step_ns), "{step_ns}");
        let steps = |count| time(site.steps("s", "s", [count, 100_000]).expect("built before"));
        let step_ns = steps(1_000);
        assert!((1e4..1e10).contains(&step_ns), "100,000 multiplications: {step_ns}");
        let fault_ns = time(site.faults().expect("built before"));
        assert!((50.0..1e7).contains(&fault_ns), "{fault_ns}");
    }

    #[test]
    fn the_source_has_each_function_once() {
        let text = c_source(50);
        for n in 0..50 {
            assert_eq!(text.matches(&format!("unsigned f{n}(")).count(), 1, "f{n}");
        }
        assert!(!text.contains("f50("));
    }
}
