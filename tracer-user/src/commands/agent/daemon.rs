//! The measuring loop: events of cgroups, ticks, signals and the watchdog, one after the other.

use std::{
    os::fd::OwnedFd,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result};
use tokio::{
    io::{Interest, unix::AsyncFd},
    time::{sleep, sleep_until},
};

mod reload;
mod saving;
mod signals;
mod start;

use saving::{next_ask, room};
use signals::AdminSignals;
pub use start::unpin;
use start::{Begun, needs, options, seconds, settings};

use super::{
    config::{Config, Flags},
    grid::{Grid, Tick},
    hierarchy::View,
    last_stamp::LastStamp,
    lock::NodeLock,
    log::{EndOfLog, Log},
    node::{Node, NodeSettings},
    output::{Losses, Output, origin},
    query::Queries,
    records::Records,
};
use crate::{
    base::{
        clock::{monotonic_ns, wall_ns},
        memory::{SeldomRun, give_back_code, give_back_freed, keep_little},
        notify::Notify,
        open_files::{self, OpenFiles},
        say::Level,
    },
    bpf::{load::check_namespace, pins::Owner},
    cgroup::hierarchies::Hierarchies,
    lines::{backlog::Pending, line::Precision},
    model::{
        job::Job,
        tables::{Own, SELF},
    },
    probes::{Options, Wake},
};

/// Least pause between two looks at whether the watchdog is due.
const ALIVE_PAUSE: Duration = Duration::from_millis(110);

/// How long who counts file operations may take to be told at the end.
const TELLING: Duration = Duration::from_secs(1);

/// What the configuration was made of, to make it anew.
pub struct Sources {
    /// The file, where one was named.
    pub file: Option<PathBuf>,
    /// The command line.
    pub flags: Flags,
}

/// Runs the agent until it is told to end; the exit status.
///
/// # Errors
/// When it cannot start.
pub fn run(config: Config, sources: &Sources) -> Result<u8> {
    // First: even the event loop opens files, and each slot in use holds one or two.
    OpenFiles::raise();
    keep_little();
    check_namespace()?;
    open_files::demand(&needs(&config))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the event loop")?.block_on(serve(config, sources))
}

async fn serve(config: Config, sources: &Sources) -> Result<u8> {
    let log = Arc::new(Log::new(Level::Info));
    let _end = EndOfLog(Arc::clone(&log));
    let notify = Notify::from_environment();
    let mut signals = AdminSignals::take()?;
    let start = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let _lock = NodeLock::take(&config.state.dir, std::process::id(), &start)?;
    let settings = settings(&config)?;
    let hierarchy = String::from(config.hierarchy.clone());
    let view = View::choose(Hierarchies::read()?, &hierarchy)?;
    let name = view.name();
    let mut agent = Agent::start(config, settings, view, log)?;
    give_back_code();
    give_back_freed();
    agent.log.info(format_args!("tracing the jobs of cgroup {name}"));
    notify.ready(&format!("tracing the jobs of cgroup {name}"));
    loop {
        match agent.next(&mut signals, &notify).await {
            Ok(Step::Go) => {}
            Ok(Step::Reload) => {
                notify.reloading();
                agent.reload(sources);
                notify.ready("configuration reloaded");
            }
            Ok(Step::End) => break,
            // The start went well: the service manager may try again.
            Err(error) => {
                agent.log.error(format_args!("{error:#}"));
                return Ok(1);
            }
        }
    }
    notify.stopping();
    agent.tell_counted().await;
    agent.attempt(Node::look_at_gpus);
    agent.node.settle();
    agent.end_interval();
    let complete = agent.finish();
    agent.log.info("ended");
    Ok(u8::from(!complete))
}

enum Step {
    Go,
    Reload,
    End,
}

struct Agent {
    config: Config,
    options: Options,
    node: Node,
    output: Output,
    records: Option<Records>,
    queries: Option<Queries>,
    /// Whether the next agent, where it goes on, knows what the last interval told.
    is_committed: bool,
    grid: Grid,
    last_stamp: LastStamp,
    log: Arc<Log>,
    events: AsyncFd<OwnedFd>,
    sightings: Wake,
    late_told: u64,
    losses_told: Losses,
    watchdog: Instant,
    seldom_run: SeldomRun,
    /// What it has pinned is not another one's.
    _pins: Option<Owner>,
}

impl Agent {
    fn start(config: Config, settings: NodeSettings, view: View, log: Arc<Log>) -> Result<Self> {
        let options = options(&config)?;
        // First: no probe is loaded where the folder cannot be written to.
        let records = Records::start(&config, &origin(&config).host)?;
        let Begun { node, output, last_stamp_ns, pins } =
            Begun::begin(&config, settings, view, &options, &log)?;
        if config.pin {
            let unpinned = node.unpinned().join(", ");
            if !unpinned.is_empty() {
                log.warning(format_args!(
                    "the values of {unpinned} are unknown for the time without an agent"
                ));
            }
        }
        // Without it reports lack what runs, and nothing else.
        let queries = Queries::start(&config.state.dir, &log)
            .inspect_err(|error| log.warning(format_args!("{error:#}")))
            .ok();
        let events = node.events_fd().context("cannot wait for events")?;
        // SAFETY: an OwnedFd is one descriptor, open as long as it lives.
        let events = unsafe { AsyncFd::register_with_interest(events, Interest::READABLE) };
        let events = events.context("cannot wait for events")?;
        let sightings = node.sightings();
        let last_stamp = LastStamp::in_folder(&config.state.dir);
        let last_ns = last_stamp.read()?.max(last_stamp_ns.unwrap_or(0));
        let grid = Grid::new(seconds(&config)?, last_ns, wall_ns(), monotonic_ns());
        let (losses_told, late_told, watchdog) = (output.losses(0), 0, Instant::now());
        let mut agent = Self {
            config,
            options,
            node,
            output,
            records,
            queries,
            is_committed: true,
            grid,
            last_stamp,
            log,
            events,
            sightings,
            late_told,
            losses_told,
            watchdog,
            seldom_run: SeldomRun::default(),
            _pins: pins,
        };
        if last_stamp_ns.is_none() {
            agent.node.commit(None, 0, &agent.options)?;
        }
        Ok(agent)
    }

    /// Waits for what comes next, and does it.
    async fn next(&mut self, signals: &mut AdminSignals, notify: &Notify) -> Result<Step> {
        let now_ns = monotonic_ns();
        let until = |ns: u64| Duration::from_nanos(ns.saturating_sub(now_ns));
        let tick = tokio::time::Instant::now() + until(self.grid.due_monotonic_ns());
        let care_after = self.node.care_after();
        let care = tokio::time::Instant::now() + care_after.unwrap_or_default();
        let alive = notify.watchdog_every().unwrap_or(Duration::MAX);
        let alive_in =
            alive.saturating_sub(self.watchdog.elapsed()).min(ALIVE_PAUSE.max(alive / 2));
        let alive_at = tokio::time::Instant::now() + alive_in.min(Duration::from_secs(86_400));
        tokio::select! {
            biased;
            _ = signals.terminate.recv() => return Ok(Step::End),
            _ = signals.interrupt.recv() => return Ok(Step::End),
            _ = signals.hang_up.recv() => return Ok(Step::Reload),
            () = sleep_until(tick) => {
                let tick = self.grid.tick(wall_ns(), monotonic_ns());
                self.write_interval(tick);
            }
            ready = self.events.readable() => {
                let mut ready = ready.context("cannot wait for events")?;
                ready.clear_ready();
                self.attempt(Node::take_events);
            }
            () = self.sightings.much() => self.node.take_sightings(),
            () = self.node.gpu_reading() => self.attempt(Node::look_at_gpus),
            () = room(self.records.as_ref()) => self.hand_over(),
            ask = next_ask(self.queries.as_mut()) => self.node.answer(self.output.origin(), ask),
            () = sleep_until(care), if care_after.is_some() => self.attempt(Node::care),
            () = sleep_until(alive_at), if notify.watchdog_every().is_some() => {}
        }
        if notify.watchdog_every().is_some_and(|every| self.watchdog.elapsed() >= every) {
            notify.alive();
            self.watchdog = Instant::now();
        }
        Ok(Step::Go)
    }

    /// Has all who count file operations told what was counted until now.
    async fn tell_counted(&mut self) {
        let Some(queries) = &mut self.queries else { return };
        let are_told = queries.end();
        let too_late = sleep(TELLING);
        tokio::pin!(are_told, too_late);
        loop {
            tokio::select! {
                () = &mut are_told => return,
                () = &mut too_late => return,
                ask = queries.next() => self.node.answer(self.output.origin(), ask),
            }
        }
    }

    /// Does something with the node; what fails is said, and tried again with the next event.
    fn attempt(&mut self, work: impl FnOnce(&mut Node, &Log) -> Result<()>) {
        if let Err(error) = work(&mut self.node, &self.log) {
            self.log.error(format_args!("{error:#}"));
        }
    }

    /// Ends the last interval of this agent's life, and writes it.
    fn end_interval(&mut self) {
        let end = match self.config.export.style.precision() {
            Precision::Nanoseconds => Grid::end,
            // A moment between two points of the grid would be taken for the first of them.
            Precision::Seconds => Grid::tick,
        };
        let end = end(&mut self.grid, wall_ns(), monotonic_ns());
        self.write_interval(end);
    }

    /// Writes an interval that ended.
    fn write_interval(&mut self, tick: Tick) {
        if let Some(remark) = tick.remark() {
            self.log.warning(remark);
        }
        let measured = match self.node.tick(self.output.origin(), tick.stamp_ns, &self.log) {
            Ok(measured) => measured,
            Err(error) => {
                self.log.error(format_args!("a reading is lost: {error:#}"));
                return;
            }
        };
        let mut jobs = measured.jobs;
        let losses = self.output.losses(self.records.as_ref().map_or(0, Records::lost));
        let system = jobs.iter_mut().find(|stats| stats.job == Job::system());
        let own = system.and_then(|stats| stats.groups.iter_mut().find(|group| group.is(&SELF)));
        if let Some(own) = own {
            losses.set(self.losses_told, own);
            own.set(Own::late_intervals, self.grid.late() - self.late_told);
            own.set(Own::jobs, measured.live as u64);
        }
        (self.losses_told, self.late_told) = (losses, self.grid.late());
        let facts = measured.facts;
        let pending = Pending { stamp_ns: tick.stamp_ns, span_ns: measured.span_ns, jobs, facts };
        self.is_committed = false;
        self.committed(|output, commit, log| {
            output.write(pending, wall_ns(), monotonic_ns(), commit, log)
        });
        self.save_records();
        self.log.tick();
        self.seldom_run.give_back(Instant::now());
    }

    /// Has `write` write intervals. What it calls before any of them appears makes sure that they are not measured
    /// again: neither their stamps nor, where the next agent goes on (`pin`), their values. Gives what `write` gives.
    fn committed(
        &mut self,
        write: impl FnOnce(&mut Output, &mut dyn FnMut(Option<&str>) -> Result<()>, &Log) -> bool,
    ) -> bool {
        let stamp_ns = self.grid.last_stamp_ns();
        let (node, options, last_stamp) = (&mut self.node, &self.options, &self.last_stamp);
        let is_committed = &mut self.is_committed;
        let mut commit = |files: Option<&str>| {
            last_stamp.write(stamp_ns)?;
            node.commit(files, stamp_ns, options)?;
            *is_committed = true;
            Ok(())
        };
        write(&mut self.output, &mut commit, &self.log)
    }
}
