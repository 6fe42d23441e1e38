//! The measuring loop: events of cgroups, ticks, signals and the watchdog, one after the other.

use std::{
    num::NonZeroU32,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use tokio::{
    io::{Interest, unix::AsyncFd},
    signal::unix::{Signal, SignalKind, signal},
    time::sleep_until,
};

use super::{
    config::{self, Config, Difference, Flags},
    grid::Grid,
    hierarchy::View,
    last_stamp::LastStamp,
    lock::NodeLock,
    log::Log,
    node::{Node, Settings},
    notify::Notify,
    output::{Losses, Output},
};
use crate::{
    cgroup::hierarchies::Hierarchies,
    clock::{monotonic_ns, wall_ns},
    export::{backlog::Pending, spool::Resume},
    model::job::Job,
    probes::{self, HOOKS, HookState, Options, Probes},
    resolve::Resolver,
    say::Level,
};

/// Pause before slots that have ended are looked at again.
const CARE: Duration = Duration::from_millis(110);

/// What the configuration was made of, to make it anew.
pub struct Sources {
    /// The file, where one was named.
    pub file: Option<std::path::PathBuf>,
    /// The command line.
    pub flags: Flags,
}

/// Runs the agent until it is told to end; the exit status.
///
/// # Errors
/// When it cannot start.
pub fn run(config: Config, sources: &Sources) -> Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the event loop")?.block_on(serve(config, sources))
}

async fn serve(config: Config, sources: &Sources) -> Result<u8> {
    let log = Log::new(Level::Info);
    let notify = Notify::from_environment();
    let mut signals = Signals::take()?;
    let start = format!("since {}", wall_ns() / 1_000_000_000);
    let _lock = NodeLock::take(&config.state.dir, std::process::id(), &start)?;
    let resolver = Resolver::new(&config.rules)?;
    let hierarchy = String::from(config.hierarchy.clone());
    let view = View::choose(Hierarchies::read()?, &hierarchy)?;
    let output = Output::open(&config, Resume::Anew, &log)?;
    let probes = probes::load(view.layout(), &options(&config)?)?;
    tell_missing(&probes, &log);
    let name = view.name();
    let node = Node::start(probes, view, resolver, settings(&config), &log)?;
    let mut agent = Agent::new(config, node, output, log)?;
    agent.log.info(format_args!("tracing the jobs of cgroup {name}"));
    notify.ready(&format!("tracing the jobs of cgroup {name}"));
    loop {
        match agent.next(&mut signals, &notify).await? {
            Step::Go => {}
            Step::Reload => {
                notify.reloading();
                agent.reload(sources);
                notify.ready("configuration read again");
            }
            Step::End => break,
        }
    }
    notify.stopping();
    agent.tick();
    let complete = agent.finish();
    agent.log.info("ended");
    Ok(u8::from(!complete))
}

enum Step {
    Go,
    Reload,
    End,
}

/// The signals that an administrator sends.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn take() -> Result<Self> {
        let take = |kind| signal(kind).context("cannot take signals");
        Ok(Self {
            terminate: take(SignalKind::terminate())?,
            interrupt: take(SignalKind::interrupt())?,
            hang_up: take(SignalKind::hangup())?,
        })
    }
}

struct Agent {
    config: Config,
    node: Node,
    output: Output,
    grid: Grid,
    last_stamp: LastStamp,
    log: Log,
    events: AsyncFd<OwnedFd>,
    late_told: u64,
    losses_told: Losses,
    watchdog: Instant,
}

impl Agent {
    fn new(config: Config, node: Node, output: Output, log: Log) -> Result<Self> {
        let events = node.events_fd().context("cannot wait for events")?;
        // SAFETY: an OwnedFd is one descriptor, open as long as it lives.
        let events = unsafe { AsyncFd::register_with_interest(events, Interest::READABLE) };
        let events = events.context("cannot wait for events")?;
        let last_stamp = LastStamp::in_folder(&config.state.dir);
        let grid = Grid::new(seconds(&config)?, last_stamp.read()?, wall_ns(), monotonic_ns());
        let losses_told = output.losses();
        let (late_told, watchdog) = (0, Instant::now());
        Ok(Self {
            config,
            node,
            output,
            grid,
            last_stamp,
            log,
            events,
            late_told,
            losses_told,
            watchdog,
        })
    }

    /// Waits for what comes next, and does it.
    async fn next(&mut self, signals: &mut Signals, notify: &Notify) -> Result<Step> {
        let now_ns = monotonic_ns();
        let until = |ns: u64| Duration::from_nanos(ns.saturating_sub(now_ns));
        let tick = tokio::time::Instant::now() + until(self.grid.due_monotonic_ns());
        let care = tokio::time::Instant::now() + CARE;
        let alive = notify.watchdog_every().unwrap_or(Duration::MAX);
        let alive_in = alive.saturating_sub(self.watchdog.elapsed()).min(CARE.max(alive / 2));
        let alive_at = tokio::time::Instant::now() + alive_in.min(Duration::from_secs(86_400));
        tokio::select! {
            biased;
            _ = signals.terminate.recv() => return Ok(Step::End),
            _ = signals.interrupt.recv() => return Ok(Step::End),
            _ = signals.hang_up.recv() => return Ok(Step::Reload),
            () = sleep_until(tick) => drop(self.tick()),
            ready = self.events.readable() => {
                let mut ready = ready.context("cannot wait for events")?;
                ready.clear_ready();
                self.attempt(Node::take_events);
            }
            () = sleep_until(care), if self.node.has_ended() => self.attempt(Node::care),
            () = sleep_until(alive_at), if notify.watchdog_every().is_some() => {}
        }
        if notify.watchdog_every().is_some_and(|every| self.watchdog.elapsed() >= every) {
            notify.alive();
            self.watchdog = Instant::now();
        }
        Ok(Step::Go)
    }

    /// Does something with the node; what fails is said, and tried again with the next event.
    fn attempt(&mut self, work: impl FnOnce(&mut Node, &Log) -> Result<()>) {
        if let Err(error) = work(&mut self.node, &self.log) {
            self.log.error(format_args!("{error:#}"));
        }
    }

    /// Ends an interval and writes it. Gives whether all is written.
    fn tick(&mut self) -> bool {
        let tick = self.grid.tick(wall_ns(), monotonic_ns());
        if let Some(remark) = tick.remark() {
            self.log.warning(remark);
        }
        let measured = match self.node.tick(self.output.origin(), tick.stamp_ns, &self.log) {
            Ok(measured) => measured,
            Err(error) => {
                self.log.error(format_args!("a reading is lost: {error:#}"));
                return false;
            }
        };
        let mut jobs = measured.jobs;
        let losses = self.output.losses();
        let system = jobs.iter_mut().find(|stats| stats.job == Job::system());
        let own = system.and_then(|stats| {
            stats.groups.iter_mut().find(|group| group.measurement.key == "self")
        });
        if let Some(own) = own {
            losses.set(self.losses_told, own);
            own.set("late_intervals", self.grid.late() - self.late_told);
            own.set("jobs", measured.live as u64);
        }
        (self.losses_told, self.late_told) = (losses, self.grid.late());
        let facts = measured.facts;
        let pending = Pending { stamp_ns: tick.stamp_ns, span_ns: tick.span_ns, jobs, facts };
        let commit = |_: Option<&str>| self.last_stamp.write(tick.stamp_ns);
        let written = self.output.write(pending, wall_ns(), monotonic_ns(), commit, &self.log);
        self.log.tick();
        written
    }

    /// Writes what the last tick left waiting. Gives whether all is written.
    fn finish(&mut self) -> bool {
        let commit = |_: Option<&str>| self.last_stamp.write(self.grid.last_stamp_ns());
        self.output.finish(monotonic_ns(), commit, &self.log)
    }

    fn reload(&mut self, sources: &Sources) {
        match self.reloaded(sources) {
            Ok(difference) => {
                self.log.notice(format_args!("configuration read again: {difference}"))
            }
            Err(error) => self.log.error(format_args!("the old configuration stays: {error:#}")),
        }
    }

    fn reloaded(&mut self, sources: &Sources) -> Result<Difference> {
        let new = config::load(sources.file.as_deref(), &sources.flags)?;
        let difference = config::reload_difference(&self.config, &new)?;
        let together = self.config.reloaded(&new)?;
        let resolver = Resolver::new(&together.rules)?;
        self.node.set(resolver, settings(&together));
        self.output.reload(&together);
        self.grid.set_interval(seconds(&together)?, wall_ns(), monotonic_ns());
        self.config = together;
        Ok(difference)
    }
}

fn seconds(config: &Config) -> Result<NonZeroU32> {
    let seconds = u32::try_from(config.interval.0.as_secs()).ok().and_then(NonZeroU32::new);
    seconds.context("the interval is no whole number of seconds")
}

fn settings(config: &Config) -> Settings {
    Settings {
        spare_slots: config.spare_slots as usize,
        steps: config.steps,
        ignored: config.jobs.ignore.clone(),
    }
}

fn options(config: &Config) -> Result<Options> {
    let development = crate::run::development()?;
    let most_slots = u16::try_from(config.slots).context("`slots` is too large")?;
    Ok(Options { most_slots, whole_node: true, faults: config.faults, ..development })
}

fn tell_missing(probes: &Probes, log: &Log) {
    for (hook, state) in HOOKS.iter().zip(probes.states()) {
        if let HookState::Missing(why) = state {
            log.warning(format_args!("unknown on this kernel: {} ({why})", hook.gives));
        }
    }
}

/// Removes what a pinned agent left in bpffs; the exit status.
///
/// # Errors
/// When an agent runs, or something cannot be removed.
pub fn unpin(_config: &Config) -> Result<u8> {
    anyhow::bail!("removing pinned probes is not built yet")
}
