//! Memory of the maps that `jobtrace run --io` adds, by the kernel's own word (memlock of their fdinfo), and what that is
//! on more CPUs.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use tracer_ebpf::tables::io::{IO_CELLS, IO_ERRORS, IO_PATH_BYTES, IoCell, IoCpu};
use tracer_ebpf::tables::io_file::FileName;
use tracer_ebpf::tables::io_slow::SlowOps;
use xtask::markdown::Table;

use super::attached::Attached;

/// What may be taken on [`FEW`] CPUs.
const MOST_BYTES: u64 = 16 << 20;
const FEW: u64 = 2;
const MANY: u64 = 256;

/// Bytes on each possible CPU: all other maps are as large on any number of them, but for an element of each table by key.
/// The kernel rounds values up to words.
const CPU_BYTES: u64 = ((IO_CELLS as usize + 1) * size_of::<IoCell>()
    + IO_ERRORS as usize * size_of::<u64>()
    + size_of::<SlowOps>()
    + size_of::<IoCpu>()
    + size_of::<[FileName; 2]>()
    + (size_of::<u32>() + IO_PATH_BYTES).next_multiple_of(8)) as u64;

/// Starts a run with and one without the programs; what the first one's maps take more.
///
/// # Errors
/// When one cannot be started or ended.
pub fn measure(jobtrace: &Path, scratch: &Path) -> Result<Table> {
    let bytes = |options: &[&str]| {
        let mut command = Command::new(jobtrace);
        command.arg("run").args(options).args(["--quiet", "--", "sleep", "600"]);
        let attached = Attached::start(command, scratch, true)?;
        let bytes = attached.watch.all_map_bytes();
        super::io::end(attached)?;
        anyhow::Ok(bytes)
    };
    let added = bytes(&["--io"])?.checked_sub(bytes(&[])?);
    let added = added.context("`run --io` has smaller maps than `run`")?;
    let cpus = aya::util::nr_cpus().map_err(|(what, error)| anyhow::anyhow!("{what}: {error}"))?;
    Ok(table(added, cpus as u64))
}

/// `bytes` on `cpus` possible CPUs, and on others.
fn table(bytes: u64, cpus: u64) -> Table {
    let fixed = bytes.saturating_sub(cpus * CPU_BYTES);
    let on = |cpus: u64| fixed + cpus * CPU_BYTES;
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / 1_048_576.0);
    let told = |cpus: u64| {
        let is_missed = cpus == FEW && on(cpus) > MOST_BYTES;
        format!("{}{}", mib(on(cpus)), if is_missed { " (goal missed)" } else { "" })
    };
    let mut table = Table::new("possible CPUs | >maps | from");
    table.row([&cpus, &told(cpus), &"the kernel's memlock of each map"]);
    let each = format!("{} and {CPU_BYTES} bytes for each", mib(fixed));
    for other in [FEW, MANY].into_iter().filter(|other| *other != cpus) {
        table.row([&other, &told(other), &each]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_add_what_each_of_them_takes_and_a_missed_goal_is_said() {
        assert!((320_000..400_000).contains(&CPU_BYTES), "{CPU_BYTES}: mostly cells");
        let text = table(10 << 20, 4).to_string();
        assert!(text.contains("| 4 | 10.0 MiB |"), "{text}");
        let many = (10 << 20) + 252 * CPU_BYTES;
        assert!(
            text.contains(&format!("| 256 | {:.1} MiB |", many as f64 / 1_048_576.0)),
            "{text}"
        );
        assert!(!text.contains("missed"), "{text}");
        assert!(table((16 << 20) + 1, 2).to_string().contains("| 2 | 16.0 MiB (goal missed) |"));
    }
}
