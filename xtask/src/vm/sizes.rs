//! Memory by possible CPUs: an agent measured on machines that could have many, into docs/SIZING.md.

use super::Cgroups;
use super::initramfs::Contents;
use super::kernels::Kernel;
use super::machine::Boot;
use crate::sections;
use anyhow::{Result, bail};
use std::fmt::Write;
use std::time::Duration;
use tracer_ebpf::{
    records::{CpuRecord, LifeEvent},
    tables::{job::JobBank, latency::LatencyBank},
};
use xtask::guest::{Line, Size, Work};

/// Boots `kernel` once for each number of possible CPUs and prints what an agent took there.
///
/// # Errors
/// When a boot fails, or its guest measures nothing.
pub fn run(
    kernel: &Kernel,
    contents: &Contents,
    cpus: &[u32],
    patience: Duration,
    write: bool,
) -> Result<()> {
    let mut sizes = Vec::new();
    let mut release = String::new();
    for possible_cpus in cpus.iter().copied() {
        let work = Work::Sizes;
        let cgroups = Cgroups::V2;
        let told = Boot { kernel, cgroups, work, contents, possible_cpus, patience }.run()?;
        if let Some(why) = told.broken {
            bail!("{possible_cpus} CPUs: {why}");
        }
        for line in told.lines {
            match line {
                Line::Size(size) if size.possible_cpus == u64::from(possible_cpus) => {
                    sizes.push(size);
                }
                Line::Size(size) => bail!(
                    "the kernel has {} possible CPUs and not {possible_cpus}: use --only 6.1",
                    size.possible_cpus
                ),
                Line::Begin { release: own, .. } => release = own,
                _ => {}
            }
        }
    }
    let text = table(&sizes);
    print!("{text}");
    if write {
        sections::write("docs/SIZING.md", "maps", &section(&release, &text))?;
    }
    Ok(())
}

fn table(sizes: &[Size]) -> String {
    let mut text = String::from(
        "| possible CPUs | faults | slots | maps | by the formula | agent's own memory | reading, \
         emulated |\n|---:|---|---:|---:|---:|---:|---:|\n",
    );
    for size in sizes {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.2} MiB | {:.2} MiB | {:.1} MiB | {:.1} ms |",
            size.possible_cpus,
            size.faults,
            size.slots,
            mib(size.map_bytes),
            mib(formula(size)),
            mib(size.anonymous_bytes),
            size.drain_ns as f64 / 1e6
        );
    }
    text
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Bytes of maps as docs/ARCHITECTURE.md has it: fixed + slots × (CPUs × bank + overhead) + CPUs ×
/// (a record and an event).
fn formula(size: &Size) -> u64 {
    let full = size.faults == "full";
    let job = size_of::<JobBank>() as u64;
    let (bank, maps) = if full { (job + size_of::<LatencyBank>() as u64, 2) } else { (job, 1) };
    let fixed = if full { FIXED_FULL } else { FIXED_MAJOR };
    fixed
        + size.slots * (size.possible_cpus * bank + maps * 320)
        + size.possible_cpus * (size_of::<CpuRecord>() + size_of::<LifeEvent>()) as u64
}

/// Fixed bytes with `--faults major`: 5.1 MiB, and the agent's ring of events, 1.9 MiB.
const FIXED_MAJOR: u64 = 7 << 20;
/// The same with `--faults full`.
const FIXED_FULL: u64 = 8 << 20;

/// Bytes of a bank, of its latencies, of a CPU's record and of an event.
fn sizes() -> [usize; 4] {
    [size_of::<JobBank>(), size_of::<LatencyBank>(), size_of::<CpuRecord>(), size_of::<LifeEvent>()]
}

/// The section of docs/SIZING.md.
fn section(release: &str, table: &str) -> String {
    let [bank, latency, record, event] = sizes();
    format!(
        "Written by `cargo xtask vm --only 6.1 --cpus 8,64,255 --write`. An agent and no job on Linux\n\
         {release}, in emulated machines of which two CPUs run and the rest are possible: the kernel\n\
         makes per-CPU maps for all possible CPUs. /sys/devices/system/cpu/possible tells how many a\n\
         node has.\n\n\
         Bytes of BPF maps, with the sizes and the fixed part that\n\
         [ARCHITECTURE.md](ARCHITECTURE.md) explains:\n\n\
         \x20   maps = fixed + slots × (possible CPUs × bank + overhead) + possible CPUs × ({record} + {event})\n\
         \x20   major: bank = {bank}, overhead = 320, fixed = 7.0 MiB\n\
         \x20   full:  bank = {bank} + {latency}, overhead = 640, fixed = 8.0 MiB\n\n\
         Slots are those with banks: the spare ones (`spare_slots`), those of jobs, and one for the\n\
         rest of the node. Both settings, `slots` and `spare_slots`, bound them.\n\n\
         {table}\n\
         Kernels before 6.4 do not state the ring of events (1.9 MiB), so there the formula is above\n\
         what they say by about that.\n\n\
         The time to read all maps is of emulation, some 20 times slower than a real machine: what it\n\
         shows is how it grows. `drain_ns` of `jobtrace_self` is a node's own.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_in_the_documents_are_the_types() {
        let text = std::fs::read_to_string(xtask::root().join("docs/ARCHITECTURE.md")).unwrap();
        let names = ["JobBank", "LatencyBank", "CpuRecord", "LifeEvent"];
        for (name, bytes) in names.into_iter().zip(sizes()) {
            let thousands = match bytes {
                0..1000 => bytes.to_string(),
                _ => format!("{},{:03}", bytes / 1000, bytes % 1000),
            };
            assert!(
                text.contains(&format!("`{name}` {thousands}")),
                "{name} has {thousands} bytes"
            );
        }
    }

    #[test]
    fn the_formula_is_architectures() {
        let size = |faults: &str, slots, possible_cpus| Size {
            possible_cpus,
            online_cpus: 2,
            faults: faults.into(),
            slots,
            map_bytes: 0,
            drain_ns: 0,
            anonymous_bytes: 0,
        };
        // docs/ARCHITECTURE.md: 33 × 2 take 7.2 MiB, 256 × 256 take 177, in full mode 8.3 and 244.
        let shown =
            |faults, slots, cpus| format!("{:.1}", mib(formula(&size(faults, slots, cpus))));
        assert_eq!(shown("major", 33, 2), "7.2");
        assert_eq!(shown("full", 33, 2), "8.3");
        assert_eq!(shown("major", 256, 256), "176.9");
        assert_eq!(shown("full", 256, 256), "244.4");
    }
}
