//! A command traced now: cgroup, probes, command, and readings until it ends.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};

use super::{
    development,
    identity::{LEASE, header, name_of},
    outputs::Outputs,
    pipeline::Pipeline,
};
use crate::{
    cgroup::{
        hierarchies::Hierarchies, job::JobCgroup, read::CgroupReader, remove::Removal, stale,
    },
    cli::Run,
    clock::{monotonic_ns, wall_ns},
    gpu::{self, Sampler},
    launch::{
        command::start,
        signals::Signals,
        wait::{Ended, Running},
    },
    model::{job::Lease, snapshot::Snapshot, source::Source},
    probes::{self, HOOKS, HookState, Options, Probes},
    replay::{End, Recorder},
    say::say,
};

/// Runs `args.command` and gives its status.
///
/// # Errors
/// When the command was not started.
pub fn run(args: &Run) -> Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the event loop")?.block_on(trace(args))
}

async fn trace(args: &Run) -> Result<u8> {
    let signals = Signals::take()?;
    let name = args.name.clone().unwrap_or_else(|| name_of(&args.command));
    let origin = header(args, Vec::new())?.origin;
    let outputs = Outputs::open(args, &origin)?;
    let hierarchies = Hierarchies::read()?;
    stale::sweep(&hierarchies);
    let cgroup = JobCgroup::create(&hierarchies, &name)?;
    let mut probes =
        probes::load(&cgroup.layout(), &Options { faults: args.faults, ..development()? })?;
    let lease = probes.track(cgroup.tasks().id, cgroup.block().map(|block| block.id))?;
    anyhow::ensure!(lease == LEASE, "the probes are in use already");
    let mut header = header(args, notes(&cgroup, &probes))?;
    if cgroup.block().is_none() || !probes.knows_block() {
        header.unknown.push("block".into());
    }
    let reader = CgroupReader::new(cgroup.places(), 0);
    let mut source = Live { reader, probes, gpus: None };
    let mut pipeline = Pipeline::new(&header, outputs)?;
    let recorder = args.record.as_ref().map(|file| Recorder::create(file, &header)).transpose()?;
    let mut recorder = Recording(recorder);
    // Before the command is there: all that is in its slot later is its own.
    let before = source.snapshot()?;

    let (program, arguments) = args.command.split_first().context("no command given")?;
    let mut running = match start(program, arguments, Some(&cgroup), signals) {
        Ok(running) => running,
        Err(error) => {
            say(&error);
            return Ok(error.status());
        }
    };
    // Not before: the command is forked off a process of one thread.
    source.gpus = gpus(&cgroup, &args.sysfs_root);
    // Joining its cgroups takes the command milliseconds that are not its own: time begins at its exec.
    if let Some(before) = before {
        let zero = zero(before, source.snapshot(), running.started_ns());
        accept(zero, &mut pipeline, &mut recorder);
    }
    let ended =
        watch(&mut running, args.interval, &mut source, &mut pipeline, &mut recorder).await?;
    let wall = wall_ns();
    source.probes.settle(LEASE);
    source.look(&mut pipeline);
    source.gpus.iter().for_each(|gpus| gpus.settle(&LEASE));
    read(&mut source, &mut pipeline, &mut recorder);
    // Held until the end: a Ctrl-C must not cut the output short.
    let _signals = running.into_signals();
    let mut notes = Vec::from_iter(cgroup.lost());
    notes.extend(source.gpus.take().map(|gpus| gpus.notes_for(&LEASE)).into_iter().flatten());
    notes.extend(left_behind(cgroup.remove()));
    let end = End { exit: ended.exit, wall_ns: wall, notes: notes.clone() };
    if let Some(Err(error)) = recorder.0.take().map(|recorder| recorder.end(end)) {
        pipeline.complain(&error);
    }
    let complete = pipeline.finish(Some((wall, ended.exit)), notes);
    let status = ended.exit.status() as u8;
    Ok(if status == 0 && !complete { 1 } else { status })
}

/// Reads once each interval until the command ends, and looks at its tasks after each reading of the GPUs.
async fn watch(
    running: &mut Running,
    interval: Duration,
    source: &mut Live,
    pipeline: &mut Pipeline,
    recorder: &mut Recording,
) -> Result<Ended> {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    ticks.tick().await;
    loop {
        tokio::select! {
            biased;
            ended = running.wait() => return ended,
            () = reading(source.gpus.as_ref()) => source.look(pipeline),
            _ = ticks.tick() => read(source, pipeline, recorder),
        }
    }
}

/// Waits for the next reading of the GPUs; for ever where they are not sampled.
async fn reading(gpus: Option<&Sampler<Lease>>) {
    match gpus {
        Some(gpus) => gpus.reading().await,
        None => std::future::pending().await,
    }
}

/// What all later readings are counted from: the moment of the exec, the node as it is `after` it, the
/// command as it was `before` it was there.
fn zero(mut before: Snapshot, after: Result<Option<Snapshot>>, started_ns: u64) -> Snapshot {
    let own = before.slots.remove_entry(&LEASE);
    let mut zero = after.ok().flatten().unwrap_or(before);
    zero.slots.extend(own);
    zero.monotonic_ns = started_ns;
    zero.wall_ns = wall_ns() - monotonic_ns().saturating_sub(started_ns);
    zero
}

/// The recording asked for, until it fails.
struct Recording(Option<Recorder>);

/// One reading on its way. What fails is said; the command goes on.
fn read(source: &mut Live, pipeline: &mut Pipeline, recording: &mut Recording) {
    match source.snapshot() {
        Ok(Some(snapshot)) => accept(snapshot, pipeline, recording),
        Ok(None) => {}
        Err(error) => pipeline.complain(&error.context("a reading is lost")),
    }
}

fn accept(snapshot: Snapshot, pipeline: &mut Pipeline, recording: &mut Recording) {
    if let Some(recorder) = &mut recording.0
        && let Err(error) = recorder.snapshot(&snapshot)
    {
        pipeline.complain(&error);
        recording.0 = None;
    }
    pipeline.take(snapshot);
}

/// The probes, what the kernel's files say of the cgroup, and the GPUs.
struct Live {
    probes: Probes,
    reader: CgroupReader,
    gpus: Option<Sampler<Lease>>,
}

impl Live {
    /// Lays what the command's tasks did beside what its GPUs did.
    fn look(&mut self, pipeline: &mut Pipeline) {
        let Some(gpus) = self.gpus.as_ref().filter(|gpus| !gpus.watched().is_empty()) else {
            return;
        };
        match self.probes.look(&[LEASE]) {
            Ok(found) => {
                let groups = found.as_ref().and_then(|found| found.get(&LEASE));
                gpus.look(&LEASE, monotonic_ns(), groups.map(Vec::as_slice));
            }
            Err(error) => {
                pipeline.complain(&error.context("a look at the command's tasks is lost"))
            }
        }
    }
}

impl Source for Live {
    fn snapshot(&mut self) -> Result<Option<Snapshot>> {
        let Some(mut snapshot) = self.probes.snapshot()? else { return Ok(None) };
        let groups = snapshot.slots.entry(LEASE).or_default();
        self.reader.add_oom_kills(groups);
        groups.extend([self.reader.read_memory(), self.reader.read_cpu()]);
        groups.extend(self.gpus.iter().flat_map(|gpus| gpus.groups_for(&LEASE, monotonic_ns())));
        Ok(Some(snapshot))
    }
}

/// The sampling of the GPUs that processes of the command are on; where there are none, it ends by itself.
fn gpus(cgroup: &JobCgroup, root: &Path) -> Option<Sampler<Lease>> {
    let name = cgroup.places().own().next()?.directory.file_name()?.to_str()?.to_owned();
    let owner = move |process: &gpu::ProcessReading| {
        gpu::is_inside(&process.cgroups, &name).then_some(LEASE)
    };
    let settings = gpu::Settings { root: root.to_owned(), ..gpu::Settings::default() };
    let started = Sampler::start(settings, owner);
    started.map_err(|error| say(format_args!("GPUs are not sampled: {error}"))).ok()
}

/// What the reader of the numbers must know before the run begins.
fn notes(cgroup: &JobCgroup, probes: &Probes) -> Vec<String> {
    let mut notes = cgroup.notes().to_vec();
    for (hook, state) in HOOKS.iter().zip(probes.states()) {
        if let HookState::Missing(why) = state {
            notes.push(format!("unknown on this kernel: {} ({}: {why})", hook.gives, hook.program));
        }
    }
    if cgroup.block().is_none() {
        notes.push(
            "block I/O is unknown: the kernel charges it to a cgroup above the command's \
             (switch the io controller on there)"
                .into(),
        );
    }
    notes
}

fn left_behind(removal: Result<Removal>) -> Vec<String> {
    match removal {
        Ok(Removal::Done) => Vec::new(),
        Ok(Removal::LeftBehind(pids)) => {
            let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
            let (count, list) = (pids.len(), pids.join(", "));
            vec![format!(
                "{count} processes outlive the command and are left alone, in its cgroup: {list}"
            )]
        }
        Err(error) => vec![format!("the command's cgroup could not be removed: {error:#}")],
    }
}
