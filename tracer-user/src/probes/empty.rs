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
const EMPTY: [(&str, Hook); 6] = [
    ("sched_switch", empty("empty_switch", Point::Tracepoint("sched_switch", &[]))),
    ("block_rq_complete", empty("empty_complete", Point::Tracepoint("block_rq_complete", &[]))),
    ("page_fault_user", empty("empty_fault", Point::Tracepoint("page_fault_user", &[]))),
    ("sock_send_length", empty("empty_switch", Point::Tracepoint("sock_send_length", &[]))),
    ("sock_recv_length", empty("empty_switch", Point::Tracepoint("sock_recv_length", &[]))),
    (
        "minor_fault_latency",
        empty("empty_event", Point::Software(SoftwareEvent::PageFaultsMin, Period::Sampled)),
    ),
];

const fn empty(program: &'static str, point: Point) -> Hook {
    Hook { program, point, needs: &[], group: "", covers: &[] }
}

/// Attaches them, and one to each of these tracepoints besides; prints `ID NAME` for each (its id, and the
/// name of the program of ours whose hook it shares, or of the tracepoint) and `ready`, and holds them until
/// standard input ends. A hook that this kernel lacks is left out with a word.
///
/// # Errors
/// When the kernel's types or the object cannot be read.
pub fn hold_empty(more: &[String]) -> Result<()> {
    let kernel = aya::Btf::from_sys_fs().context("cannot read the kernel's types")?;
    let mut held = Vec::new();
    let mut lines = BTreeMap::new();
    let more = more.iter().map(|name| {
        // As long as the process.
        let name: &'static str = name.clone().leak();
        (name, empty("empty_switch", Point::Tracepoint(name, &[])))
    });
    for (name, hook) in EMPTY.into_iter().chain(more) {
        // A program is loaded for one hook: each has a copy of its own.
        let ebpf = EbpfLoader::new().load(OBJECT).context("cannot load the BPF object")?;
        let sample_every = sample_every(&ebpf, OBJECT)?;
        let mut programs = Programs::loaded(ebpf, sample_every);
        let attached = programs.load(&hook, &kernel).and_then(|()| programs.attach(&hook));
        if let Err(error) = attached {
            eprintln!("jobtrace bench-empty: not on {name}: {error:#}");
            continue;
        }
        let mut all = programs.iter();
        let (_, program) =
            all.find(|(name, _)| *name == hook.program).context("the program is gone")?;
        lines.insert(program.info()?.id(), name);
        drop(all);
        held.push(programs);
    }
    for (id, ours) in lines {
        println!("{id} {ours}");
    }
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new()).context("cannot read standard input")?;
    Ok(())
}
