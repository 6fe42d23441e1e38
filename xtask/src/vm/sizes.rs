//! Memory by possible CPUs: an agent measured on machines that could have many, into docs/SIZING.md.

use super::Cgroups;
use super::initramfs::Contents;
use super::kernels::Kernel;
use super::machine::Boot;
use anyhow::{Result, bail};
use std::time::Duration;
use tracer_ebpf::{
    records::{Cpu, LifeEvent},
    tables::{job::JobBank, latency::LatencyBank},
};
use xtask::guest::{Line, Size, Work};
use xtask::markdown::{Table, mib};
use xtask::sections;

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
        let boot = Boot { kernel, cgroups, work, checks: &[], contents, possible_cpus, patience };
        let told = boot.run()?;
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
    let text = format!("Linux {release}.\n\n{}", table(&sizes));
    print!("{text}");
    if write { sections::write("docs/SIZING.md", &[("maps", text)]) } else { Ok(()) }
}

fn table(sizes: &[Size]) -> Table {
    let mut table = Table::new(
        ">possible CPUs | faults | >slots | >maps | >by the formula | >agent's own memory | \
         >reading, emulated",
    );
    for size in sizes {
        table.row([
            &size.possible_cpus,
            &size.faults,
            &size.slots,
            &format_args!("{:.2} MiB", mib(size.map_bytes)),
            &format_args!("{:.2} MiB", mib(formula(size))),
            &format_args!("{:.1} MiB", mib(size.anonymous_bytes)),
            &format_args!("{:.1} ms", size.drain_ns as f64 / 1e6),
        ]);
    }
    table
}

/// Bytes of maps as docs/SIZING.md has it: fixed + slots × (CPUs × bank + overhead) + CPUs ×
/// (a record and an event).
fn formula(size: &Size) -> u64 {
    let full = size.faults == "full";
    let job = size_of::<JobBank>() as u64;
    let (bank, maps) = if full { (job + size_of::<LatencyBank>() as u64, 2) } else { (job, 1) };
    let fixed = if full { FIXED_FULL } else { FIXED_MAJOR };
    fixed
        + size.slots * (size.possible_cpus * bank + maps * 320)
        + size.possible_cpus * (size_of::<Cpu>() + size_of::<LifeEvent>()) as u64
}

/// Fixed bytes with `--faults major`: 5.4 MiB, and the agent's ring of events, 1.9 MiB.
const FIXED_MAJOR: u64 = (73 << 20) / 10;
/// The same with `--faults full`.
const FIXED_FULL: u64 = FIXED_MAJOR + (1 << 20);

#[cfg(test)]
mod tests {
    use super::*;
    use tracer_ebpf::records::TaskRecord;
    use xtask::markdown::thousands;

    #[test]
    fn the_sizes_in_the_documents_are_the_types() {
        let read = |name: &str| std::fs::read_to_string(xtask::root().join(name)).unwrap();
        let (architecture, sizing) = (read("docs/ARCHITECTURE.md"), read("docs/SIZING.md"));
        let job = size_of::<JobBank>();
        let (latency, record) = (size_of::<LatencyBank>(), size_of::<Cpu>());
        let event = size_of::<LifeEvent>();
        let sizes = [
            ("JobBank", job),
            ("LatencyBank", latency),
            ("TaskRecord", size_of::<TaskRecord>()),
            ("Cpu", record),
            ("LifeEvent", event),
        ];
        let sizes = sizes.map(|(name, bytes)| format!("`{name}` {}", thousands(bytes as u64)));
        let told = format!("Bytes: {}.", sizes.join(", "));
        assert!(architecture.contains(&told), "docs/ARCHITECTURE.md lacks {told}");
        let formula = [
            format!("+ possible CPUs × ({record} + {event})"),
            format!("major: bank = {job}, overhead = 320, fixed = {:.1} MiB", mib(FIXED_MAJOR)),
            format!(
                "full:  bank = {job} + {latency}, overhead = 640, fixed = {:.1}",
                mib(FIXED_FULL)
            ),
        ];
        for part in formula {
            assert!(sizing.contains(&part), "docs/SIZING.md lacks {part}");
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
        // docs/ARCHITECTURE.md: 33 × 2 take 7.5 MiB, 256 × 256 take 212, in full mode 8.6 and 280.
        let shown =
            |faults, slots, cpus| format!("{:.1}", mib(formula(&size(faults, slots, cpus))));
        assert_eq!(shown("major", 33, 2), "7.5");
        assert_eq!(shown("full", 33, 2), "8.6");
        assert_eq!(shown("major", 256, 256), "212.2");
        assert_eq!(shown("full", 256, 256), "279.7");
    }
}
