//! `jobtrace bench-empty`: the floor that the benchmark measures our programs against.

use std::{collections::BTreeMap, io::Read};

use anyhow::{Context, Result};
use aya::{EbpfLoader, programs::perf_event::SoftwareEvent};

use super::{load::sample_every, options::OBJECT};
use crate::bpf::{
    hook::{Hook, Period, Point},
    programs::Programs,
};

/// The empty programs, each with the program of ours whose hook it shares.
const EMPTY: [(&str, Hook); 4] = [
    ("sched_switch", empty("empty_switch", Point::Tracepoint("sched_switch", &[]))),
    ("block_rq_complete", empty("empty_complete", Point::Tracepoint("block_rq_complete", &[]))),
    ("page_fault_user", empty("empty_fault", Point::Tracepoint("page_fault_user", &[]))),
    (
        "minor_fault_latency",
        empty("empty_event", Point::Software(SoftwareEvent::PageFaultsMin, Period::Sampled)),
    ),
];

const fn empty(program: &'static str, point: Point) -> Hook {
    Hook { program, point, needs: &[], group: "", covers: None }
}

/// Attaches them, prints `ID NAME` for each (its id, and the name of the program of ours whose hook it
/// shares) and `ready`, and holds them until standard input ends.
///
/// # Errors
/// When the kernel refuses one.
pub fn hold_empty() -> Result<()> {
    let kernel = aya::Btf::from_sys_fs().context("cannot read the kernel's types")?;
    let ebpf = EbpfLoader::new().load(OBJECT).context("cannot load the BPF object")?;
    let sample_every = sample_every(&ebpf, OBJECT)?;
    let mut programs = Programs::loaded(ebpf, sample_every);
    let mut lines = BTreeMap::new();
    for (ours, hook) in &EMPTY {
        let attached = programs.load(hook, &kernel).and_then(|()| programs.attach(hook));
        attached.with_context(|| format!("cannot attach {}", hook.program))?;
        let mut all = programs.iter();
        let (_, program) =
            all.find(|(name, _)| *name == hook.program).context("the program is gone")?;
        lines.insert(program.info()?.id(), ours);
    }
    for (id, ours) in lines {
        println!("{id} {ours}");
    }
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new()).context("cannot read standard input")?;
    Ok(())
}
