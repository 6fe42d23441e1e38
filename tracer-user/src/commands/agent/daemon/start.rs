//! How the agent begins: where an agent before this one ended, or anew; and what each part needs of the
//! configuration.

use std::{
    num::NonZeroU32,
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::{
    base::{
        clock::monotonic_ns,
        open_files::{Needs, SlotNeeds},
        say::say,
    },
    bpf::pins::{self, Owner},
    commands::agent::{
        config::{CensusMode, Config},
        hierarchy::View,
        lock::NodeLock,
        log::Log,
        naming::Naming,
        node::{Node, NodeSettings, Watch},
        output::Output,
        software::SoftwareSettings,
        state::{AgentState, JournalEntry, Keeper},
    },
    lines::spool::Resume,
    probes::{self, Family, FaultMode, Options, Probes, Room},
    resolve::Resolver,
};

/// Where programs and maps are pinned.
const PINS: &str = "/sys/fs/bpf/jobtrace";
/// How long another may be the owner of what is there: one that only removes what others left is done in a moment.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(200);
/// Why what is pinned is left alone.
const BESIDE: &str =
    "an agent with another `state.dir` runs on this node and has pinned its probes";

/// Where the agent goes on from.
pub(super) struct Begun {
    pub node: Node,
    pub output: Output,
    /// Stamp of the last interval that an agent before this one reported, where this one goes on there.
    pub last_stamp_ns: Option<u64>,
    /// To be held as long as the agent runs; `None` where it does not pin.
    pub pins: Option<Owner>,
}

impl Begun {
    /// Takes over what an agent before this one left attached, or loads the programs.
    ///
    /// # Errors
    /// When the agent cannot start.
    pub fn begin(
        config: &Config,
        settings: NodeSettings,
        view: View,
        options: &Options,
        log: &Log,
    ) -> Result<Self> {
        let software = SoftwareSettings::of(config)?;
        let mut keeper = Keeper::new(&config.state.dir);
        let root = Path::new(PINS);
        if config.pin {
            pins::make_root(root)?;
        }
        let pins = owner(root, if config.pin { PATIENCE } else { Duration::ZERO })?;
        if config.pin && pins.is_none() {
            bail!("{BESIDE}: end that one, or set `pin` to false");
        }
        let found = if config.pin { taken_over(&mut keeper, &view, options, log) } else { None };
        if let Some((mut probes, state, journal)) = found {
            let watch = watch(software, &mut probes, &view, log)?;
            let output = Output::open(config, Resume::Continued(state.files.as_deref()), log)?;
            let last_stamp_ns = Some(state.stamp_ns);
            let span_ns = monotonic_ns().saturating_sub(state.reported.monotonic_ns);
            let span_s = span_ns / 1_000_000_000;
            log.notice(format_args!(
                "took over the probes of the previous agent, which last reported {span_s} s ago"
            ));
            let mut node = Node::resume(probes, view, settings, (state, journal), keeper, log)?;
            watch.into_iter().for_each(|watch| node.watch_with(watch));
            return Ok(Self { node, output, last_stamp_ns, pins });
        }
        keeper.clear()?;
        let left = if pins.is_some() { pins::remove_all(root, None)? } else { Vec::new() };
        for set in left {
            log.notice(format_args!("removed {set}, which a previous agent left attached"));
        }
        // Who does not pin is in nobody's way.
        let pins = pins.filter(|_| config.pin);
        let output = Output::open(config, Resume::Anew, log)?;
        let mut probes = probes::load(view.layout(), options)?;
        tell_missing(&probes, options, log);
        let watch = watch(software, &mut probes, &view, log)?;
        let mut node = Node::start(probes, view, settings, log)?;
        watch.into_iter().for_each(|watch| node.watch_with(watch));
        if config.pin {
            node.keep_with(keeper);
        }
        Ok(Self { node, output, last_stamp_ns: None, pins })
    }
}

/// The interval.
pub(super) fn seconds(config: &Config) -> Result<NonZeroU32> {
    let seconds = u32::try_from(config.interval.0.as_secs()).ok().and_then(NonZeroU32::new);
    seconds.context("the interval is not a whole number of seconds")
}

/// What the node needs.
pub(super) fn settings(config: &Config) -> Result<NodeSettings> {
    let resolver = Resolver::new(&config.rule)?;
    let (steps, ignored) = (config.steps, config.jobs.ignore.clone());
    Ok(NodeSettings {
        spare_slots: config.spare_slots as usize,
        naming: Arc::new(Naming { resolver, steps, ignored }),
        overhead: (&config.overhead).into(),
        gpus: (&config.gpu).into(),
        owners_count_io: config.jobs.io_by_owner,
        records_every: config.records.save.then_some(config.records.every.0),
    })
}

/// The files that may come to be open. Operations on files are counted when somebody asks for it.
pub(super) fn needs(config: &Config) -> Needs {
    let banks = match config.faults {
        FaultMode::Major => 1,
        FaultMode::Full => 2,
    };
    let slots = Some(SlotNeeds { most: config.slots.into(), banks });
    Needs { io: true, software: config.census != CensusMode::Off, slots }
}

/// What the probes need.
pub(super) fn options(config: &Config) -> Result<Options> {
    let development = probes::development()?;
    let most_slots = u16::try_from(config.slots).context("`slots` is too large")?;
    let pin = config.pin.then(|| PINS.into());
    Ok(Options {
        most_slots,
        whole_node: true,
        faults: config.faults,
        waits: config.waits,
        pin,
        ..development
    })
}

/// Has `probes` see which software jobs run, where that is asked for; what this kernel does not tell is said.
fn watch(
    software: Option<SoftwareSettings>,
    probes: &mut Probes,
    view: &View,
    log: &Log,
) -> Result<Option<Watch>> {
    let Some(software) = software else { return Ok(None) };
    let watch = Watch::new(software)?;
    if let Err(error) = probes.load_census(view.layout(), Room::NODE) {
        log.warning(format_args!("which software jobs run is unknown: {error:#}"));
        return Ok(None);
    }
    for (row, why) in probes.missing_hooks().filter(|(row, _)| row.family == Family::Census) {
        log.warning(format_args!("unknown on this kernel: {} ({why})", row.gives));
    }
    Ok(Some(watch))
}

fn tell_missing(probes: &Probes, options: &Options, log: &Log) {
    let hooks = probes.missing_hooks().map(|(row, why)| (row.gives, why));
    for (gives, why) in hooks.chain(probes.missing_waits(options.waits)) {
        log.warning(format_args!("unknown on this kernel: {gives} ({why})"));
    }
}

/// The probes that the agent before left attached, with what it reported; `None` where there are none, or
/// none that this agent can go on with: that is said.
fn taken_over(
    keeper: &mut Keeper,
    view: &View,
    options: &Options,
    log: &Log,
) -> Option<(Probes, AgentState, Vec<JournalEntry>)> {
    let read = keeper.read().and_then(|found| {
        let Some((state, journal)) = found else { return Ok(None) };
        let root = Path::new(PINS);
        let (carried, reported) = (&state.carried, &state.reported);
        let probes = probes::take_over(root, view.layout(), options, carried, reported)?;
        Ok(Some((probes, state, journal)))
    });
    match read {
        Ok(found) => found,
        Err(error) => {
            log.notice(format_args!("cannot resume where the previous agent stopped: {error:#}"));
            None
        }
    }
}

/// The owner of what is pinned in `root`; `None` where another process is it for longer than `patience`.
fn owner(root: &Path, patience: Duration) -> Result<Option<Owner>> {
    let since = Instant::now();
    loop {
        let owner = Owner::of(root)?;
        if owner.is_some() || since.elapsed() >= patience {
            return Ok(owner);
        }
        thread::sleep(PAUSE);
    }
}

/// Removes what a pinned agent left in bpffs; the exit status.
///
/// # Errors
/// When an agent runs, or something cannot be removed.
pub fn unpin(config: &Config) -> Result<u8> {
    let _lock = NodeLock::take(&config.state.dir, std::process::id(), "removing pinned probes")?;
    let root = Path::new(PINS);
    let Some(_pins) = Owner::of(root)? else { bail!("{BESIDE}: end that one first") };
    let removed = pins::remove_all(root, None)?;
    Keeper::new(&config.state.dir).clear()?;
    match removed.as_slice() {
        [] => say("nothing is pinned"),
        sets => say(format_args!("removed {}", sets.join(", "))),
    }
    Ok(0)
}
