//! How large each BPF program is once this kernel has verified and compiled it.

use super::stack;
use crate::bpf;
use anyhow::{Context, Result};
use jobtrace::cgroup::{hierarchies::Hierarchies, job::JobCgroup};
use jobtrace::probes::{self, FaultMode, Options};
use std::fs;
use xtask::{root, source_digest::ALWAYS};

/// One program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// Its name as the kernel has it.
    pub program: String,
    /// Instructions after the verifier cut what cannot be reached.
    pub instructions: u32,
    /// Instructions that the verifier walked through; `None` before Linux 5.16.
    pub verified: Option<u32>,
    /// Machine code, in bytes; 0 where programs are interpreted.
    pub machine_code_bytes: u32,
    /// Stack of its deepest chain of calls, in bytes, from the object.
    pub stack_bytes: Option<u64>,
}

/// Loads all programs as `jobtrace run` does and asks the kernel.
///
/// # Errors
/// When they cannot be loaded.
pub fn measure() -> Result<Vec<Size>> {
    let object = fs::read(root().join(ALWAYS.file)).context("the object")?;
    let depths = stack::depths(&object)?;
    let before = bpf::programs()?;
    let cgroup = JobCgroup::create(&Hierarchies::read()?, "bench-sizes")?;
    let probes = probes::load(&cgroup.layout(), &Options::new(FaultMode::Full))?;
    let mut sizes = Vec::new();
    for id in bpf::programs()?.into_iter().filter(|id| !before.contains(id)) {
        let program = bpf::program(&bpf::hold(id)?)?;
        let depth = depths.iter().find(|(name, _)| bpf::is_named(&program, name));
        // Somebody else's, loaded meanwhile.
        let Some((name, depth)) = depth else { continue };
        sizes.push(Size {
            program: name.clone(),
            instructions: program.translated_bytes / 8,
            verified: (program.verified > 0).then_some(program.verified),
            machine_code_bytes: program.machine_code_bytes,
            stack_bytes: Some(*depth),
        });
    }
    drop(probes);
    Ok(sizes)
}

/// The table, as Markdown.
pub fn table(sizes: &[Size]) -> String {
    let mut text = String::from(
        "\n## Size of each BPF program\n\
         As this kernel took them: instructions left, instructions that the verifier walked through (its\n\
         limit is 1,000,000), machine code, and stack (the kernel's limit is 512 bytes).\n\n\
         | program | instructions | verified | machine code, bytes | stack, bytes |\n\
         | --- | ---: | ---: | ---: | ---: |\n",
    );
    let number = |number: Option<u64>| number.map_or("unknown".to_owned(), |n| n.to_string());
    for size in sizes {
        text += &format!(
            "| `{}` | {} | {} | {} | {} |\n",
            size.program,
            size.instructions,
            number(size.verified.map(u64::from)),
            size.machine_code_bytes,
            number(size.stack_bytes)
        );
    }
    text
}
