//! From the running kernel's types to loaded programs: offsets into globals, maps made, hooks attached.

use std::{borrow::Cow, collections::BTreeMap, panic::resume_unwind, path::PathBuf, thread};

use anyhow::Context;
use aya::{Ebpf, EbpfLoader};
use tracer_ebpf::{
    kernel_fields::{self, MISSING, bit_global},
    settings,
};

use super::{
    attach::{attach_all, check_all, verify_planned, with_causes},
    btf::Btf,
    drain::{Parts, Probes},
    error::LoadError,
    hooks::{FaultMode, HOOKS, HookState, REQUIRED_GROUP, TIMES_NEED},
    log::BpfLog,
    maps::Maps,
    memlock::LiftedMemlock,
    offsets::{self, Offsets, is_in_reach},
    pins::{self, Pinning},
    privileges::{check_namespace, lacking_capabilities},
    programs::Programs,
    rodata::{RODATA, read_global},
    type_ids::type_ids,
    unknown::unknown_fields,
    verify::Verified,
};
use crate::{
    base::{clock::monotonic_ns, layout::Layout, open_files},
    model::job::Slot,
};

/// The programs, built by `cargo xtask ebpf`.
pub(super) static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tracer-ebpf/object/tracer.bpf.o"
));

/// What to load.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which faults are timed.
    pub faults: FaultMode,
    /// Log level of the programs' rare warnings: 0 is off.
    pub log_level: u8,
    /// An object to load instead of the built-in one.
    pub object: Option<PathBuf>,
    /// Most slots to give.
    pub most_slots: Slot,
    /// Whether every cgroup of the node is told of and gets a slot at once, or only those inside tracked
    /// ones.
    pub whole_node: bool,
    /// Folder in bpffs for programs and maps that are to stay attached when this process ends.
    pub pin: Option<PathBuf>,
    /// Kernel fields to do without, by the names of their globals, as on a kernel that lacks them.
    pub without: &'static [&'static str],
}

impl Options {
    /// For one job, by the built-in object.
    pub fn new(faults: FaultMode) -> Self {
        Self {
            faults,
            log_level: 0,
            object: None,
            most_slots: 1023,
            whole_node: false,
            pin: None,
            without: &[],
        }
    }
}

/// Bytes of the ring of events for the whole node: more than ten thousand new cgroups.
const NODE_RING_BYTES: u32 = 2 << 20;

/// Loads and attaches everything that `options` ask for and this kernel allows.
///
/// # Errors
/// When not even scheduling can be traced, or too few files may be open.
pub fn load(layout: &Layout, options: &Options) -> Result<Probes, LoadError> {
    check_namespace()?;
    open_files::check().map_err(LoadError::OpenFiles)?;
    if let Some(lacking) = lacking_capabilities().filter(|lacking| !lacking.is_empty()) {
        return Err(LoadError::Capabilities(lacking));
    }
    let btf = Btf::read().map_err(LoadError::Unsupported)?;
    let (mut globals, offsets) =
        globals(&btf, layout, options.without).map_err(LoadError::Unsupported)?;
    globals.insert(settings::NEW_CGROUPS_GET_SLOTS, options.whole_node.into());
    let checked = check_all(&btf, &globals);
    let kernel = type_ids(&btf).map_err(LoadError::Unsupported)?;
    drop(btf);
    let _lifted = LiftedMemlock::new();
    let object = object(options)?;
    let mut ebpf = create(&globals, &offsets, options, &object)?;
    let sample_every = sample_every(&ebpf, &object).map_err(LoadError::Unsupported)?;
    globals.insert(settings::MINOR_LATENCY_EVERY, sample_every);
    let pinning = options
        .pin
        .as_ref()
        .map(|root| Pinning::begin(root, pins::set_name(&object, layout, options), &ebpf));
    let pinning = pinning.transpose().map_err(LoadError::Unsupported)?;
    drop(object);
    let log = (options.log_level > 0).then(|| BpfLog::open(&mut ebpf)).transpose();
    let log = log.map_err(LoadError::Unsupported)?;
    let mut maps = Maps::take(&mut ebpf).map_err(LoadError::Unsupported)?;
    let mut programs = Programs::loaded(ebpf, sample_every);
    let verified = prepare(&mut programs, &mut maps, &kernel, &checked, options.faults)
        .map_err(LoadError::Unsupported)?;
    let states = attach_all(&mut programs, &kernel, checked, verified, options.faults);
    let since_ns = monotonic_ns();
    drop(kernel);
    give_back();
    let required = HOOKS.iter().zip(&states).filter(|(hook, _)| hook.group == REQUIRED_GROUP);
    let mut why = String::new();
    for (hook, state) in required {
        match state {
            HookState::Attached => {
                let unknown = unknown_fields(&states, &globals, options.faults);
                let parts = Parts { programs, maps, states, unknown, sample_every, since_ns, log };
                let mut probes = Probes::new(parts, options, layout);
                if let Some(pinning) = pinning {
                    pinning.finish(&mut probes).map_err(LoadError::Unsupported)?;
                }
                return Ok(probes);
            }
            HookState::Missing(reason) => why = format!("{}: {reason}", hook.program),
            HookState::NotNeeded => {}
        }
    }
    Err(LoadError::of(&why))
}

/// Has the programs verified, and places the banks of the rest of the node and of the first job. The one is
/// work for the kernel, the other a wait for it: both at once.
fn prepare(
    programs: &mut Programs,
    maps: &mut Maps,
    kernel: &aya::Btf,
    checked: &[anyhow::Result<()>],
    faults: FaultMode,
) -> anyhow::Result<Verified> {
    thread::scope(|scope| {
        let verify = || verify_planned(programs, kernel, checked, faults);
        let verifying = thread::Builder::new().name("verify".into()).spawn_scoped(scope, verify);
        let verifying = verifying.context("cannot start a thread")?;
        let placed = maps.add_slots(&[0, 1], faults);
        let verified = verifying.join().unwrap_or_else(|panic| resume_unwind(panic));
        placed.map(|()| verified)
    })
}

/// Values of all globals, by name, and offsets of the fields.
fn globals(
    btf: &Btf,
    layout: &Layout,
    without: &[&str],
) -> anyhow::Result<(BTreeMap<&'static str, u64>, Offsets)> {
    let mut globals = BTreeMap::new();
    let mut offsets = Offsets::new();
    for field in kernel_fields::ALL {
        let member = btf.member(field.path).filter(|member| member.bit_width <= 1);
        let member = member.filter(|member| is_in_reach(member.bit_offset / 8));
        let member = member.filter(|_| !without.contains(&field.global));
        let value = match member {
            None => MISSING,
            Some(member) if member.bit_width == 1 => bit_global(member.bit_offset),
            Some(member) => member.bit_offset / 8,
        };
        globals.insert(field.global, value);
        offsets.extend(member.map(|member| (field.global, member.bit_offset / 8)));
    }
    if let Some(controller) = &layout.tasks_controller {
        let subsystem = format!("{controller}_cgrp_id");
        let index = btf.enum_value("cgroup_subsys_id", &subsystem).with_context(|| {
            format!("this kernel's types have no cgroup controller {controller}")
        })?;
        globals.insert(settings::TASKS_IN_V1, 1);
        if let Some(offset) = offsets.get_mut("CSS_SET_SUBSYS") {
            *offset += u64::from(index) * size_of::<*const ()>() as u64;
        }
    }
    globals.insert(settings::TASKS_HIERARCHY, layout.tasks_hierarchy.into());
    globals.insert(settings::BLOCK_HIERARCHY, layout.block_hierarchy.map_or(MISSING, u64::from));
    globals.insert(settings::BLOCK_TABLE, layout.block_table().into());
    let times = TIMES_NEED.iter().all(|field| globals[field] != MISSING);
    globals.insert(settings::TIMES_KNOWN, times.into());
    let fault_bit = globals["TASK_IN_USER_FAULT"] != MISSING;
    globals.insert(settings::FAULT_BIT_KNOWN, fault_bit.into());
    Ok((globals, offsets))
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

/// The object to load.
pub(super) fn object(options: &Options) -> Result<Cow<'static, [u8]>, LoadError> {
    let Some(path) = &options.object else { return Ok(OBJECT.into()) };
    let read = std::fs::read(path);
    Ok(read.map_err(|error| LoadError::Object(path.clone(), error.into()))?.into())
}

/// Creates the maps and prepares the programs.
fn create(
    globals: &BTreeMap<&'static str, u64>,
    offsets: &Offsets,
    options: &Options,
    object: &[u8],
) -> Result<Ebpf, LoadError> {
    let mut loader = EbpfLoader::new();
    for (name, value) in globals {
        loader.override_global(name, value, true);
    }
    loader.override_global("AYA_LOG_LEVEL", &options.log_level, false);
    if options.log_level == 0 {
        loader.map_max_entries("AYA_LOGS", rustix::param::page_size() as u32);
    }
    if options.faults == FaultMode::Major {
        loader.map_max_entries("FAULTS", 1);
    }
    if options.whole_node {
        loader.map_max_entries("EVENTS", NODE_RING_BYTES);
    }
    let failed = |text: String| match &options.object {
        Some(path) => LoadError::Object(path.clone(), anyhow::anyhow!(text)),
        None => LoadError::of(&text),
    };
    let mut object = object.to_vec();
    offsets::apply(&mut object, offsets).map_err(|error| failed(format!("{error:#}")))?;
    loader.load(&object).map_err(|error| failed(with_causes(&error)))
}

/// Gives the memory of the kernel's types back: they are most of what loading takes.
fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: has no preconditions.
    unsafe {
        libc::malloc_trim(0);
    }
}
