//! A command traced now: cgroup, probes, command, and readings until it ends.

use std::{cell::Cell, io, time::Duration};

use anyhow::{Context, Result};

use super::Args;
use super::{
    buffered::{self, Written},
    gpus,
    identity::{LEASE, header, name_of},
    notes::{left_behind, notes, unknown_io},
    outputs::Outputs,
    pipeline::Pipeline,
    software,
    top::{self, Taken},
};
use crate::{
    base::{
        clock::{monotonic_ns, wall_ns},
        open_files::{self, Needs, OpenFiles},
        say::say,
    },
    bpf::load::check_namespace,
    census::Namer,
    cgroup::{hierarchies::Hierarchies, job::JobCgroup, read::CgroupReader, stale},
    files::target::is_standard_output,
    gpu::Sampler,
    io::{self as file_io, Io},
    launch::{
        command::{StartError, start},
        signals::Signals,
        wait::{Ended, Running},
    },
    model::{lease::Lease, snapshot::Snapshot, source::Source},
    probes::{self, Options, Probes, Wake},
    replay::{End, Header, Recorder},
    screen::Stream,
};

/// Runs `args.command` and gives its status.
///
/// # Errors
/// When the command was not started.
pub fn run(args: &Args) -> Result<u8> {
    let terminal = args.top.then(top::terminal).transpose()?;
    // Before all else: even the event loop opens files.
    let limit = OpenFiles::raise();
    check_namespace()?;
    open_files::demand(&Needs { io: args.io, software: args.software, slots: None })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let traced =
        runtime.context("cannot start the event loop")?.block_on(trace(args, limit, terminal));
    // What a shell has a status for; all else is 2.
    traced.or_else(|error| {
        let error = error.downcast::<StartError>()?;
        say(&error);
        Ok(error.status())
    })
}

async fn trace(args: &Args, limit: OpenFiles, terminal: Option<Stream>) -> Result<u8> {
    let signals = Signals::take()?;
    let name = args.name.clone().unwrap_or_else(|| name_of(&args.command));
    let origin = header(args, Vec::new())?.origin;
    let go_on = || match signals.told_to_end() {
        Some(signal) => Err(StartError::Interrupted(signal).into()),
        None => Ok(()),
    };
    let outputs = Outputs::open(args, &origin, go_on)?;
    let hierarchies = Hierarchies::read()?;
    stale::sweep(&hierarchies);
    let cgroup = JobCgroup::create(&hierarchies, &name)?;
    let mut probes = probes::load(
        &cgroup.layout(),
        &Options { faults: args.faults, waits: args.waits, ..probes::development()? },
    )?;
    let lease = probes.slots.track(cgroup.tasks().id, cgroup.block().map(|block| block.id))?;
    anyhow::ensure!(lease == LEASE, "the probes are in use already");
    let mut notes_before = notes(&cgroup, &probes, args.waits);
    let io = if args.io {
        let whose = file_io::Whose { cgroup: cgroup.tasks().id, runs: false, mounts_of: None };
        let loaded = file_io::load(&cgroup.layout(), &whose);
        loaded.map_err(|error| notes_before.push(unknown_io(&error))).ok()
    } else {
        None
    };
    let namer = if args.software {
        let begun = software::begin(&mut probes, &cgroup.layout(), &mut notes_before);
        begun.map_err(|error| notes_before.push(software::unknown(&error))).ok()
    } else {
        None
    };
    let mut header = header(args, notes_before)?;
    if cgroup.block().is_none() || !probes.knows_block() {
        header.unknown.push("block".into());
    }
    if !cgroup.has_memory() {
        header.unknown.push("memory".into());
    }
    let is_v1 = cgroup.block().is_some_and(|block| block.hierarchy != 0);
    let lacks_buffered = is_v1 && probes.knows_block();
    if lacks_buffered {
        header.unknown.push("write_back".into());
    }
    let reader = CgroupReader::new(cgroup.places());
    let mut source = Live { reader, probes, io, namer, gpus: None };
    let mut pipeline = Pipeline::new(&header, outputs)?;
    // Before the command is there: all that is in its slot later is its own.
    let before = source.snapshot()?;
    let node_before = buffered::on_node();

    let (program, arguments) = args.command.split_first().context("no command given")?;
    // Standard output is then the numbers' alone.
    let is_taken =
        [&args.json, &args.record].into_iter().flatten().any(|path| is_standard_output(path));
    let stdout = is_taken.then_some(io::stderr());
    // The command has its streams from there.
    let taken = terminal.map(Taken::take).transpose()?;
    let mut running = start(program, arguments, stdout, Some(&cgroup), signals, limit)?;
    pipeline.begin();
    let mut recorder = Recording::begin(&mut pipeline, &header);
    // Not before: the command is forked off a process of one thread.
    source.gpus = gpus::start(&cgroup, &args.sysfs_root);
    // Joining its cgroups takes the command milliseconds that are not its own: time begins at its exec.
    if let Some(before) = before {
        let zero = zero(before, source.snapshot(), running.started_ns());
        accept(zero, &mut pipeline, &mut recorder);
    }
    if let Err(error) = pipeline.show(taken) {
        pipeline.complain(&error);
    }
    let ended =
        watch(&mut running, args.interval, &mut source, &mut pipeline, &mut recorder).await?;
    let wall = wall_ns();
    source.probes.settle(LEASE);
    source.look(&mut pipeline);
    source.gpus.iter().for_each(|gpus| gpus.settle(&LEASE));
    read(&mut source, &mut pipeline, &mut recorder);
    // Held until the end: a Ctrl-C must not cut the output short.
    let signals = running.into_signals();
    let mut notes = Vec::from_iter(cgroup.lost());
    notes.extend(source.io.iter().flat_map(Io::notes));
    if let Some(namer) = &source.namer {
        pipeline.name_software(software::end(&mut source.probes, namer, &mut notes));
    }
    if lacks_buffered && source.probes.knows_block() {
        let on_node = buffered::on_node().zip(node_before);
        let written = Written {
            waited_for: ended.usage.written_bytes,
            charged: pipeline.written_bytes(),
            on_node: on_node.map(|(now, before)| now.saturating_sub(before)),
            is_alone: pipeline.is_alone(),
        };
        notes.extend(written.notes());
    }
    if let Some(gpus) = source.gpus.take() {
        notes.extend(gpus.notes_for(&LEASE));
        gpus.exit();
    }
    notes.extend(left_behind(cgroup.remove()));
    let files = source.io.as_mut().map(Io::files).unwrap_or_default();
    let end = End { exit: ended.exit, wall_ns: wall, notes: notes.clone(), files: files.clone() };
    pipeline.name_files(files);
    match recorder.0.take().map(|recorder| recorder.end(end)) {
        Some(Ok(recording)) => pipeline.give_recording_back(recording),
        Some(Err(error)) => pipeline.complain(&error),
        None => {}
    }
    // A wait for a reader may be long: nothing stays in the kernel for it.
    drop(source);
    // What ended the command must not end that wait besides. Later one signal ends it for all outputs.
    signals.told_to_end();
    let told = Cell::new(None);
    let go_on = || match told.get().or_else(|| signals.told_to_end()) {
        Some(signal) => {
            told.set(Some(signal));
            anyhow::bail!("ended by signal {signal} before its reader had read everything")
        }
        None => Ok(()),
    };
    let complete = pipeline.finish(Some((wall, ended.exit)), notes, go_on);
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
    let mut early = tokio::time::interval(file_io::EARLY);
    early.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let wake = Wake::of(source.probes.census.as_ref());
    loop {
        tokio::select! {
            biased;
            ended = running.wait() => return ended,
            () = wake.much() => software::take(&mut source.probes),
            () = gpus::reading(source.gpus.as_ref()) => source.look(pipeline),
            _ = ticks.tick() => read(source, pipeline, recorder),
            _ = early.tick(), if source.io.is_some() => source.read_early(pipeline),
        }
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

impl Recording {
    fn begin(pipeline: &mut Pipeline, header: &Header) -> Self {
        let recorder = pipeline.take_recording().map(|target| Recorder::create(target, header));
        Self(recorder.transpose().inspect_err(|error| pipeline.complain(error)).unwrap_or(None))
    }
}

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

/// The probes, the operations on files where they were asked for, what the kernel's files say of the cgroup, and
/// the GPUs.
struct Live {
    probes: Probes,
    io: Option<Io>,
    /// Names the software that the command runs, where that is asked for.
    namer: Option<Namer>,
    reader: CgroupReader,
    gpus: Option<Sampler<Lease>>,
}

impl Live {
    /// Takes what was done to files where the next reading would be too late for it.
    fn read_early(&mut self, pipeline: &mut Pipeline) {
        if let Some(Err(error)) = self.io.as_mut().map(Io::read_early) {
            pipeline.complain(&error.context("a look at the command's files is lost"));
        }
    }

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
        if let Some(io) = &mut self.io {
            groups.extend(io.read()?);
        }
        if let Some(namer) = &self.namer {
            software::tell(&mut self.probes, namer);
        }
        groups.extend(self.gpus.iter().flat_map(|gpus| gpus.groups_for(&LEASE, monotonic_ns())));
        Ok(Some(snapshot))
    }
}
