//! How large each program is once this kernel has verified and compiled it.

use crate::bpf;
use anyhow::Result;
use jobtrace::cgroup::{hierarchies::Hierarchies, job::JobCgroup};
use jobtrace::probes::{self, FaultMode, Options};
use xtask::markdown::{Table, or_dash};

/// Loads all programs as `jobtrace run` does and asks the kernel: instructions left, instructions that the
/// verifier walked through, machine code.
///
/// # Errors
/// When they cannot be loaded.
pub fn table() -> Result<Table> {
    let before = bpf::programs()?;
    let cgroup = JobCgroup::create(&Hierarchies::read()?, "bench-sizes")?;
    let probes = probes::load(&cgroup.layout(), &Options::new(FaultMode::Full))?;
    let loaded = bpf::programs()?;
    drop(probes);
    let mut table = Table::new("program | >instructions | >verified | >machine code, bytes");
    for (_, program) in loaded.iter().filter(|(id, _)| !before.contains_key(id)) {
        table.row([
            &format_args!("`{}`", program.name),
            &(program.translated_bytes / 8),
            &or_dash(program.verified, |count| count.to_string()),
            &program.machine_code_bytes,
        ]);
    }
    Ok(table)
}
