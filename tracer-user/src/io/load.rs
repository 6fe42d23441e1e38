//! Loading and attaching the programs.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use tracer_ebpf::{kernel_fields::MISSING, settings};

use super::{
    calls,
    hooks::{self, is_for, is_required},
    lacking::Lacking,
    read::{Io, Maps},
    servers::Servers,
};
use crate::{
    base::{layout::Layout, memory::give_back_freed, mounts::Mounts},
    bpf::{
        attach::{attach_all, check, planned},
        btf::Btf,
        hook::Hook,
        kernel_calls::KernelCalls,
        load::{Plan, create},
        maps::of_loaded,
        memlock::LiftedMemlock,
        preemption::{ByEvents, interrupts_programs},
        programs::Programs,
        set::Set,
        type_ids::TypeIds,
    },
    probes::{self, FaultMode, Options},
};

/// The programs, built by `cargo xtask ebpf`.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tracer-ebpf/object/io.bpf.o"
));

/// Whose operations are counted.
#[derive(Clone, Debug)]
pub struct Whose {
    /// Id of the job's cgroup; those below are the job's too.
    pub cgroup: u64,
    /// Whether it runs already: else its first program begins it.
    pub runs: bool,
    /// Processes of which one has the mounts that paths are to be told by; `None`: this one.
    pub mounts_of: Option<Vec<u32>>,
}

/// Loads and attaches them for a job of the hierarchy by which `layout` tells jobs apart.
///
/// # Errors
/// When this kernel lacks a hook or refuses a program: a part of the operations would say nothing.
pub fn load(layout: &Layout, job: &Whose) -> Result<Io> {
    let btf = Btf::read()?;
    let (mut globals, offsets) = probes::globals(&btf, layout, &Options::new(FaultMode::Major))?;
    let is_typed = globals[settings::CURRENT_TASK_TYPED] != 0;
    globals.insert(settings::JOB_CGROUP, job.cgroup);
    globals.insert(settings::JOB_RUNS, job.runs.into());
    let calls = KernelCalls::find(&btf, &mut globals);
    globals.insert(settings::PAGE_BYTES, rustix::param::page_size() as u64);
    globals.insert(settings::TICK_NS, tick_ns());
    let head = btf.enum_value("pageflags", "PG_head").map_or(0, |bit| 1 << bit);
    globals.insert(settings::PAGE_HEAD, head);
    globals.insert(settings::INODE_BYTES, btf.size("inode").unwrap_or(0));
    globals.insert(settings::CALL_URING_ENTER, libc::SYS_io_uring_enter as u64);
    let is_interrupted = interrupts_programs();
    let asked: Vec<&'static Hook> =
        hooks::all().filter(|hook| is_for(hook, is_typed, is_interrupted)).collect();
    let checked = |hook: &'static Hook| match is_required(hook) || is_typed {
        true => check(hook, &btf, &globals),
        false => bail!("the kernel has no helper for the current task's type (before 5.11)"),
    };
    let checked: Vec<_> = asked.iter().map(|hook| (*hook, Some(checked(hook)))).collect();
    let type_ids = TypeIds::find(&btf, hooks::all());
    drop(btf);
    let _lifted = LiftedMemlock::lift();
    let has_account = globals["TASK_READ_BYTES"] != MISSING;
    let plan = Plan {
        object: OBJECT,
        globals: &globals,
        offsets: &offsets,
        calls,
        entries: &[],
        tables: &[("IO_CALLS", &calls::table())],
        log_level: 0,
    };
    let mut ebpf = create(&plan)?;
    let maps = Maps::new(&mut of_loaded(&mut ebpf))?;
    let mut programs = Programs::loaded(ebpf, 1);
    let kernel = type_ids.to_aya()?;
    // One after the other, on this thread alone: others wait for the CPUs of the node.
    let verify = |hook: &'static Hook| (hook.program, programs.load(hook, &kernel));
    let verified = planned(&checked).into_iter().map(verify).collect();
    let by_events = ByEvents::begin();
    let states = attach_all(&mut programs, &kernel, checked, verified);
    drop(kernel);
    give_back_freed();
    let lacking = Lacking::of(asked.iter().copied().zip(&states), has_account)?;
    let set = Set::new(programs, asked, states, None);
    let is_own = job.mounts_of.is_none();
    let (readers, systems) = (BTreeMap::new(), BTreeMap::new());
    let servers = Servers::default();
    let mut io = Io {
        set,
        maps,
        names: Mounts::told(),
        is_own,
        lacks_mounts: false,
        mounted_anew: BTreeSet::new(),
        lacking,
        readers,
        systems,
        servers,
        _by_events: by_events,
    };
    let are_known = job.mounts_of.as_ref().is_some_and(|processes| io.follow(processes));
    if !are_known {
        // Of a job without processes yet these are the nearest.
        io.follow_own()?;
    }
    Ok(io)
}

/// Nanoseconds of a tick of the kernel's clock: the coarse clocks are as fine as that.
fn tick_ns() -> u64 {
    let resolution = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    resolution.tv_nsec as u64
}
