//! Loading and attaching the programs.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use tracer_ebpf::settings;

use super::{
    calls,
    hooks::{HOOKS, is_for},
    read::{Io, Maps},
    servers::Servers,
};
use crate::{
    base::{layout::Layout, memory::give_back_freed, mounts::Mounts},
    bpf::{
        attach::{attach_all, check},
        btf::Btf,
        hook::{Hook, HookState},
        load::{Plan, create},
        maps::of_loaded,
        memlock::LiftedMemlock,
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
    let asked: Vec<&'static Hook> = HOOKS.iter().filter(|hook| is_for(hook, is_typed)).collect();
    let checked: Vec<_> =
        asked.iter().map(|hook| (*hook, Some(check(hook, &btf, &globals)))).collect();
    let type_ids = TypeIds::find(&btf, &HOOKS);
    drop(btf);
    let _lifted = LiftedMemlock::lift();
    let plan = Plan {
        object: OBJECT,
        globals: &globals,
        offsets: &offsets,
        entries: &[],
        tables: &[("IO_CALLS", &calls::table())],
        log_level: 0,
    };
    let mut ebpf = create(&plan)?;
    let maps = Maps::new(&mut of_loaded(&mut ebpf))?;
    let mut programs = Programs::loaded(ebpf, 1);
    let kernel = type_ids.to_aya()?;
    // One after the other, on this thread alone: others wait for the CPUs of the node.
    let verified = asked.iter().map(|hook| (hook.program, programs.load(hook, &kernel))).collect();
    let states = attach_all(&mut programs, &kernel, checked, verified);
    drop(kernel);
    give_back_freed();
    for (hook, state) in asked.iter().zip(&states) {
        if let HookState::Missing(why) = state {
            bail!("{}: {why}", hook.program);
        }
    }
    let set = Set::new(programs, asked, states, None);
    let is_own = job.mounts_of.is_none();
    let names = if is_own { Mounts::default() } else { Mounts::told() };
    let (readers, systems) = (BTreeMap::new(), BTreeMap::new());
    let servers = Servers::default();
    let mut io = Io { set, maps, names, is_own, lacks_mounts: false, readers, systems, servers };
    let are_known = job.mounts_of.as_ref().is_some_and(|processes| io.follow(processes));
    if !are_known {
        // Of a job without processes yet these are the nearest.
        io.follow_own()?;
    }
    Ok(io)
}
