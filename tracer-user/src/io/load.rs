//! Loading and attaching the programs.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use tracer_ebpf::settings;

use super::{
    calls,
    hooks::HOOKS,
    read::{Io, Maps},
};
use crate::{
    base::{layout::Layout, mounts::Mounts},
    bpf::{
        attach::{attach_all, check, verify_planned},
        btf::Btf,
        hook::{Hook, HookState},
        load::{Plan, create, give_back},
        maps::of_loaded,
        memlock::LiftedMemlock,
        programs::Programs,
        set::Set,
        type_ids::type_ids,
    },
    probes::{self, FaultMode, Options},
};

/// The programs, built by `cargo xtask ebpf`.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tracer-ebpf/object/io.bpf.o"
));

/// Loads and attaches them for the job in cgroup `job`, of the hierarchy by which `layout` tells jobs apart. They
/// begin to count when a program is executed there.
///
/// # Errors
/// When this kernel lacks a hook or refuses a program: a part of the operations would say nothing.
pub fn load(layout: &Layout, job: u64) -> Result<Io> {
    let btf = Btf::read()?;
    let (mut globals, offsets) = probes::globals(&btf, layout, &Options::new(FaultMode::Major))?;
    ensure!(
        globals[settings::CURRENT_TASK_TYPED] != 0,
        "this kernel has no helper for the current task, as Linux 5.11 and later have"
    );
    globals.insert(settings::JOB_CGROUP, job);
    let checked: Vec<_> =
        HOOKS.iter().map(|hook| (hook, Some(check(hook, &btf, &globals)))).collect();
    let kernel = type_ids(&btf, &HOOKS)?;
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
    let verified = verify_planned(&mut programs, &kernel, &checked);
    let states = attach_all(&mut programs, &kernel, checked, verified);
    drop(kernel);
    give_back();
    for (hook, state) in HOOKS.iter().zip(&states) {
        if let HookState::Missing(why) = state {
            bail!("{}: {why}", hook.program);
        }
    }
    let hooks: Vec<&'static Hook> = HOOKS.iter().collect();
    let _set = Set::new(programs, hooks, states, None);
    let (names, readers, systems) = (Mounts::default(), BTreeMap::new(), BTreeMap::new());
    Ok(Io { _set, maps, names, readers, systems })
}
