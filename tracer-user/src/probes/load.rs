//! From the running kernel's types to attached programs: offsets into globals, each hook tried alone.

use std::collections::BTreeMap;

use anyhow::Context;
use aya::{
    Ebpf, EbpfLoader,
    programs::{
        BtfTracePoint, FEntry, PerfEvent,
        perf_event::{PerfEventConfig, PerfEventScope, SamplePolicy},
    },
    util::online_cpus,
};
use tracer_ebpf::{
    kernel_fields::{self, MISSING, bit_global},
    settings,
};

use super::{
    btf::Btf,
    drain::Probes,
    hooks::{FaultMode, HOOKS, Hook, HookState, Period, Point, REQUIRED_GROUP},
    maps::Maps,
    memlock::LiftedMemlock,
};

/// One minor fault in this many is timed in full mode. A prime: loops that fault in a pattern of a
/// power of two are sampled at every phase.
pub const MINOR_LATENCY_EVERY: u64 = 61;

/// The programs, built by `cargo xtask ebpf`.
pub(super) static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tracer-ebpf/object/tracer.bpf.o"
));

/// Where jobs are told apart on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Number of the tasks' hierarchy (0 is cgroup v2's).
    pub tasks_hierarchy: u32,
    /// Its controller where it is cgroup v1's (`memory`).
    pub tasks_controller: Option<String>,
    /// Number of the hierarchy that block I/O is charged in.
    pub block_hierarchy: u32,
}

impl Layout {
    /// Table of the block hierarchy's ids: the tasks', or its own.
    pub fn block_table(&self) -> u32 {
        u32::from(self.block_hierarchy != self.tasks_hierarchy)
    }
}

/// What to load.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which faults are timed.
    pub faults: FaultMode,
    /// Log level of the programs' rare warnings: 0 is off.
    pub log_level: u8,
    /// An object to load instead of the built-in one.
    pub object: Option<std::path::PathBuf>,
}

/// Why nothing can be traced.
#[derive(Debug)]
pub enum LoadError {
    /// The caller lacks the privilege.
    NotPermitted(anyhow::Error),
    /// The kernel lacks something.
    Unsupported(anyhow::Error),
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotPermitted(error) => write!(
                f,
                "not permitted to trace: run as root or with CAP_BPF and CAP_PERFMON ({error:#})"
            ),
            Self::Unsupported(error) => {
                write!(f, "this kernel cannot be traced: {error:#}; `jobtrace doctor` tells more")
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// Loads and attaches everything that `options` ask for and this kernel allows.
///
/// # Errors
/// When not even scheduling can be traced.
pub fn load(layout: &Layout, options: &Options) -> Result<Probes, LoadError> {
    let btf = Btf::read().map_err(LoadError::Unsupported)?;
    let globals = globals(&btf, layout).map_err(LoadError::Unsupported)?;
    let _lifted = LiftedMemlock::new();
    let mut ebpf = create(&globals, options)?;
    let mut maps = Maps::take(&mut ebpf).map_err(LoadError::Unsupported)?;
    maps.add_slot(0, options.faults).map_err(LoadError::Unsupported)?;
    let kernel = aya::Btf::from_sys_fs().map_err(|error| LoadError::Unsupported(error.into()))?;
    let states = attach_all(&mut ebpf, &btf, &kernel, &globals, options.faults);
    let required = HOOKS.iter().zip(&states).filter(|(hook, _)| hook.group == REQUIRED_GROUP);
    let mut why = String::new();
    for (hook, state) in required {
        match state {
            HookState::Attached => {
                return Ok(Probes::new(ebpf, maps, states, &globals, options, layout));
            }
            HookState::Missing(reason) => why = format!("{}: {reason}", hook.program),
            HookState::NotNeeded => {}
        }
    }
    let error = anyhow::anyhow!("{why}");
    Err(if why.contains("ermi") {
        LoadError::NotPermitted(error)
    } else {
        LoadError::Unsupported(error)
    })
}

/// What every time but `on_cpu_ns` is made of (CONFIG_SCHED_INFO, CONFIG_FAIR_GROUP_SCHED).
const TIMES_NEED: [&str; 7] = [
    "TASK_CFS_RQ",
    "CFS_RQ_RQ",
    "RQ_CLOCK",
    "TASK_RUN_DELAY",
    "TASK_LAST_ARRIVAL",
    "TASK_LAST_QUEUED",
    "TASK_PCOUNT",
];

/// Values of all globals, by name.
fn globals(btf: &Btf, layout: &Layout) -> anyhow::Result<BTreeMap<&'static str, u64>> {
    let mut globals = BTreeMap::new();
    for field in kernel_fields::ALL {
        let value = match btf.member(field.path) {
            None => MISSING,
            Some(member) if member.bit_width == 1 => bit_global(member.bit_offset),
            Some(member) if member.bit_width == 0 => member.bit_offset / 8,
            Some(_) => MISSING,
        };
        globals.insert(field.global, value);
    }
    if let Some(controller) = &layout.tasks_controller {
        let subsystem = format!("{controller}_cgrp_id");
        let index = btf.enum_value("cgroup_subsys_id", &subsystem).with_context(|| {
            format!("this kernel's types have no cgroup controller {controller}")
        })?;
        globals.insert(settings::TASKS_IN_V1, 1);
        globals.insert(settings::TASKS_SUBSYS, index.into());
    }
    globals.insert(settings::TASKS_HIERARCHY, layout.tasks_hierarchy.into());
    globals.insert(settings::BLOCK_HIERARCHY, layout.block_hierarchy.into());
    globals.insert(settings::BLOCK_TABLE, layout.block_table().into());
    let times = TIMES_NEED.iter().all(|field| globals[field] != MISSING);
    globals.insert(settings::TIMES_KNOWN, times.into());
    let fault_bit = globals["TASK_IN_USER_FAULT"] != MISSING;
    globals.insert(settings::FAULT_BIT_KNOWN, fault_bit.into());
    Ok(globals)
}

/// Creates the maps and prepares the programs.
fn create(globals: &BTreeMap<&'static str, u64>, options: &Options) -> Result<Ebpf, LoadError> {
    let from_file = match &options.object {
        None => None,
        Some(path) => Some(
            std::fs::read(path)
                .with_context(|| format!("cannot read the BPF object {}", path.display()))
                .map_err(LoadError::Unsupported)?,
        ),
    };
    let mut loader = EbpfLoader::new();
    for (name, value) in globals {
        loader.override_global(name, value, true);
    }
    loader.override_global("AYA_LOG_LEVEL", &options.log_level, false);
    if options.faults == FaultMode::Major {
        loader.map_max_entries("FAULTS", 1);
    }
    loader.load(from_file.as_deref().unwrap_or(OBJECT)).map_err(|error| {
        let text = with_causes(&error);
        let error = anyhow::anyhow!("{text}");
        if text.contains("ermi") {
            LoadError::NotPermitted(error)
        } else {
            LoadError::Unsupported(error)
        }
    })
}

fn attach_all(
    ebpf: &mut Ebpf,
    btf: &Btf,
    kernel: &aya::Btf,
    globals: &BTreeMap<&'static str, u64>,
    faults: FaultMode,
) -> Vec<HookState> {
    let mut attached: Vec<&str> = Vec::new();
    let attach = |hook: &Hook| {
        if (hook.full_only && faults != FaultMode::Full) || attached.contains(&hook.group) {
            return HookState::NotNeeded;
        }
        match check(hook, btf, globals).and_then(|()| attach(hook, ebpf, kernel)) {
            Ok(()) => {
                attached.push(hook.group);
                HookState::Attached
            }
            Err(error) => HookState::Missing(format!("{error:#}")),
        }
    };
    let mut states: Vec<_> = HOOKS.iter().map(attach).collect();
    // An alternative that failed before the one that attached is no loss.
    for (hook, state) in HOOKS.iter().zip(&mut states) {
        if matches!(state, HookState::Missing(_)) && attached.contains(&hook.group) {
            *state = HookState::NotNeeded;
        }
    }
    states
}

/// Whether this kernel has what the hook needs, before the verifier is asked.
fn check(hook: &Hook, btf: &Btf, globals: &BTreeMap<&'static str, u64>) -> anyhow::Result<()> {
    for need in hook.needs {
        let field = kernel_fields::ALL.iter().find(|field| field.global == *need);
        let path = field.map_or(*need, |field| field.path);
        anyhow::ensure!(
            globals.get(need).is_some_and(|&v| v != MISSING),
            "this kernel has no {path}"
        );
    }
    match hook.point {
        Point::Tracepoint(name, arguments) => {
            let found = btf
                .tracepoint(name)
                .with_context(|| format!("this kernel has no tracepoint {name}"))?;
            anyhow::ensure!(
                found == arguments,
                "tracepoint {name} has other arguments: ({})",
                found.join(", ")
            );
        }
        Point::FunctionEntry(name) => {
            anyhow::ensure!(btf.has_function(name), "this kernel has no function {name}");
        }
        Point::Software(..) => {}
    }
    Ok(())
}

pub(super) fn attach(hook: &Hook, ebpf: &mut Ebpf, kernel: &aya::Btf) -> anyhow::Result<()> {
    let program = ebpf
        .program_mut(hook.program)
        .with_context(|| format!("the BPF object has no program {}", hook.program))?;
    let result = match hook.point {
        Point::Tracepoint(name, _) => {
            let program: &mut BtfTracePoint = program.try_into()?;
            program.load(name, kernel).and_then(|()| program.attach().map(drop))
        }
        Point::FunctionEntry(name) => {
            let program: &mut FEntry = program.try_into()?;
            program.load(name, kernel).and_then(|()| program.attach().map(drop))
        }
        Point::Software(event, period) => {
            let program: &mut PerfEvent = program.try_into()?;
            let cpus = online_cpus().map_err(|(path, error)| {
                anyhow::Error::new(error).context(format!("cannot read {path}"))
            })?;
            let period = match period {
                Period::Each => 1,
                Period::Sampled => MINOR_LATENCY_EVERY,
            };
            program.load().and_then(|()| {
                cpus.into_iter().try_for_each(|cpu| {
                    let scope = PerfEventScope::AllProcessesOneCpu { cpu };
                    let policy = SamplePolicy::Period(period);
                    program.attach(PerfEventConfig::Software(event), scope, policy, false).map(drop)
                })
            })
        }
    };
    result.map_err(|error| anyhow::anyhow!("{}", with_causes(&error)))
}

/// The error and its causes in one line, the verifier's log cut down to its last words.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    match lines.as_slice() {
        [first, .., before, last] => format!("{first} … {before} {last}"),
        _ => lines.join(" "),
    }
}
