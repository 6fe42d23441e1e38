//! Loading and attaching the programs that always run.

use anyhow::Context;
use aya::Ebpf;
use tracer_ebpf::settings;

use super::{
    banks::Banks,
    blocks::Blocks,
    calls,
    drain::{Parts, Probes},
    globals::globals,
    hooks::{HOOKS, HookRow, REQUIRED_GROUP},
    options::{FaultMode, Options},
    readings::Readings,
    records::Records,
    slots::Slots,
    unknown::{unknown_fields, unknown_waits},
    waits::Waits,
};
use crate::{
    base::{
        both,
        clock::monotonic_ns,
        layout::Layout,
        memory::{give_back_code, give_back_freed},
    },
    bpf::{
        attach::{Checked, attach_all, check, verify_planned},
        btf::Btf,
        error::LoadError,
        hook::{Hook, HookState},
        kernel_calls::KernelCalls,
        load::{Plan, check_allowed, create},
        log::BpfLog,
        maps::of_loaded,
        memlock::LiftedMemlock,
        pins::Pinning,
        programs::Programs,
        rodata::{RODATA, read_global},
        set::Set,
        type_ids::TypeIds,
        verify::Verified,
    },
};

/// Bytes of the ring of events for the whole node: more than ten thousand new cgroups.
const NODE_RING_BYTES: u32 = 2 << 20;

/// Loads and attaches everything that `options` ask for and this kernel allows.
///
/// # Errors
/// When not even scheduling can be traced, or too few files may be open.
pub fn load(layout: &Layout, options: &Options) -> Result<Probes, LoadError> {
    check_allowed()?;
    let btf = Btf::read().map_err(LoadError::Unsupported)?;
    let (globals, offsets) = globals(&btf, layout, options).map_err(LoadError::Unsupported)?;
    let is_full = options.faults == FaultMode::Full;
    let is_asked = |row: &HookRow| is_full || !row.family.row().full_only;
    let checked = HOOKS.iter().map(|row| {
        let check = || row.check(layout).and_then(|()| check(&row.hook, &btf, &globals));
        (&row.hook, is_asked(row).then(check))
    });
    let checked: Vec<_> = checked.collect();
    let type_ids = TypeIds::find(&btf, all_hooks());
    drop(btf);
    let _lifted = LiftedMemlock::lift();
    let object = options.object()?;
    let plan = Plan {
        object: &object,
        globals: &globals,
        offsets: &offsets,
        calls: KernelCalls::default(),
        entries: &entries(options),
        tables: &[("CALLS", &calls::table())],
        log_level: options.log_level,
    };
    let mut ebpf = create(&plan).map_err(|error| options.refused(error))?;
    let sample_every = sample_every(&ebpf, &object).map_err(LoadError::Unsupported)?;
    let pinning = options
        .pin
        .as_ref()
        .map(|root| Pinning::begin(root, options.set_name(&object, layout), &ebpf));
    let pinning = pinning.transpose().map_err(LoadError::Unsupported)?;
    drop(object);
    let log = (options.log_level > 0).then(|| BpfLog::open(&mut ebpf)).transpose();
    let log = log.map_err(LoadError::Unsupported)?;
    let (mut records, mut slots, blocks, waits) =
        parts_of(&mut ebpf, layout, options).map_err(LoadError::Unsupported)?;
    let mut programs = Programs::loaded(ebpf, sample_every);
    // What the start ran so far, and what it needs now, are the most that it takes.
    if options.whole_node {
        give_back_code();
    }
    let kernel = type_ids.to_aya().map_err(LoadError::Unsupported)?;
    let verified =
        prepare(&mut programs, slots.banks(), &kernel, &checked).map_err(LoadError::Unsupported)?;
    let states = attach_all(&mut programs, &kernel, checked, verified);
    let since_ns = monotonic_ns();
    drop(kernel);
    records.let_go_of_zeros().map_err(LoadError::Unsupported)?;
    give_back_freed();
    check_required(&states)?;
    let mut unknown = unknown_fields(&states, options.faults);
    unknown.extend(unknown_waits(globals[settings::WAITS]));
    let set = Set::new(programs, all_hooks(), states, log);
    let readings = Readings::new(unknown, sample_every);
    let parts = Parts { set, records, slots, blocks, waits, readings, since_ns };
    let mut probes = Probes::new(parts, options);
    if let Some(pinning) = pinning {
        probes.pin(pinning).map_err(LoadError::Unsupported)?;
    }
    Ok(probes)
}

/// What lies over the maps of a loaded object.
fn parts_of(
    ebpf: &mut Ebpf,
    layout: &Layout,
    options: &Options,
) -> anyhow::Result<(Records, Slots, Blocks, Waits)> {
    let mut take = of_loaded(ebpf);
    let (records, blocks) = (Records::new(&mut take)?, Blocks::new(&mut take)?);
    let waits = Waits::new(&mut take)?;
    let slots = Slots::new(&mut take, layout, options)?;
    Ok((records, slots, blocks, waits))
}

/// Has the programs verified, and places the banks of the rest of the node and of the first job. The one is
/// work for the kernel, the other a wait for it: both at once.
fn prepare(
    programs: &mut Programs,
    banks: &mut Banks,
    kernel: &aya::Btf,
    checked: &[Checked],
) -> anyhow::Result<Verified> {
    let (verified, placed) =
        both(|| verify_planned(programs, kernel, checked), || banks.add_all(&[0, 1]));
    placed.map(|()| verified)
}

/// The hooks of all rows, in their order.
pub fn all_hooks() -> Vec<&'static Hook> {
    HOOKS.iter().map(|row| &row.hook).collect()
}

/// Refuses where no hook of the required group is attached.
fn check_required(states: &[HookState]) -> Result<(), LoadError> {
    let mut why = String::new();
    let required = HOOKS.iter().zip(states).filter(|(row, _)| row.hook.group == REQUIRED_GROUP);
    for (row, state) in required {
        match state {
            HookState::Attached => return Ok(()),
            HookState::Missing(reason) => why = format!("{}: {reason}", row.hook.program),
            HookState::NotNeeded => {}
        }
    }
    Err(LoadError::of(&why))
}

/// Maps that get another number of entries than the object says.
fn entries(options: &Options) -> Vec<(&'static str, u32)> {
    let mut entries = Vec::new();
    if options.faults == FaultMode::Major {
        entries.push(("FAULTS", 1));
    }
    if options.whole_node {
        entries.push(("EVENTS", NODE_RING_BYTES));
    }
    entries
}

/// One minor fault in this many is timed by the programs that `object` gave: the global that the programs
/// read, and the one place that the period of their event and what the data say of it come from.
///
/// # Errors
/// When it cannot be read, or is 0.
pub fn sample_every(ebpf: &Ebpf, object: &[u8]) -> anyhow::Result<u64> {
    let rodata = ebpf.map(RODATA).with_context(|| format!("the BPF object has no {RODATA}"))?;
    let every = read_global(rodata, object, settings::MINOR_LATENCY_EVERY)?;
    anyhow::ensure!(every != 0, "global {} is 0", settings::MINOR_LATENCY_EVERY);
    Ok(every)
}
