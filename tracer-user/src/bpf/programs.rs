//! The loaded programs and what they are attached to: fresh from the object, or found pinned.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use aya::{
    Ebpf,
    programs::{
        BtfTracePoint, FEntry, FExit, PerfEvent, Program, TracePoint,
        links::{FdLink, PinnedLink},
        perf_event::{PerfEventConfig, PerfEventLink, PerfEventScope, SamplePolicy},
    },
    util::online_cpus,
};

use super::{
    error::with_causes,
    hook::{Hook, Period, Point},
    verify::{Verified, verify, verify_all},
};

/// The programs. Dropping them detaches all that is not pinned.
pub struct Programs {
    origin: Origin,
    /// Attachments by program.
    attached: BTreeMap<&'static str, Vec<Link>>,
    /// Period of the sampled event.
    sample_every: u64,
    /// Where attachments are pinned.
    pins: Option<PathBuf>,
}

enum Origin {
    Loaded(Box<Ebpf>),
    Pinned(BTreeMap<&'static str, Program>),
}

enum Link {
    Fd(FdLink),
    /// Kernels before 5.15 know no link of an event: it cannot be pinned.
    Event(#[expect(dead_code, reason = "held: dropping it detaches")] PerfEventLink),
}

impl Programs {
    /// Those of a loaded object.
    pub fn loaded(ebpf: Ebpf, sample_every: u64) -> Self {
        let origin = Origin::Loaded(Box::new(ebpf));
        Self { origin, attached: BTreeMap::new(), sample_every, pins: None }
    }

    /// Those of `hooks` that are pinned in `dir`, with their attachments.
    ///
    /// # Errors
    /// When one is of another kind than its hook says, or the folder cannot be read.
    pub fn open(
        dir: &Path,
        hooks: impl IntoIterator<Item = &'static Hook>,
        sample_every: u64,
    ) -> Result<Self> {
        let (mut programs, mut attached) = (BTreeMap::new(), BTreeMap::new());
        for hook in hooks {
            let path = dir.join(program_pin(hook.program));
            if !path.exists() {
                continue;
            }
            let program = match hook.point {
                Point::Tracepoint(..) => BtfTracePoint::from_pin(&path).map(Program::BtfTracePoint),
                Point::FunctionEntry(_) => FEntry::from_pin(&path).map(Program::FEntry),
                Point::FunctionExit(..) => FExit::from_pin(&path).map(Program::FExit),
                Point::Event(..) => TracePoint::from_pin(&path).map(Program::TracePoint),
                Point::Software(..) => PerfEvent::from_pin(&path).map(Program::PerfEvent),
            };
            let program = program.with_context(|| format!("cannot open {}", path.display()))?;
            programs.insert(hook.program, program);
            let mut links = Vec::new();
            for path in link_pins(dir, hook.program)? {
                let link = PinnedLink::from_pin(&path)
                    .with_context(|| format!("cannot open {}", path.display()))?;
                links.push(Link::Fd(link.into()));
            }
            if !links.is_empty() {
                attached.insert(hook.program, links);
            }
        }
        let pins = Some(dir.to_owned());
        Ok(Self { origin: Origin::Pinned(programs), attached, sample_every, pins })
    }

    /// The programs and their names.
    pub fn iter(&self) -> Box<dyn Iterator<Item = (&str, &Program)> + '_> {
        match &self.origin {
            Origin::Loaded(ebpf) => Box::new(ebpf.programs()),
            Origin::Pinned(programs) => {
                Box::new(programs.iter().map(|(name, program)| (*name, program)))
            }
        }
    }

    fn get_mut(&mut self, name: &str) -> Result<&mut Program> {
        let program = match &mut self.origin {
            Origin::Loaded(ebpf) => ebpf.program_mut(name),
            Origin::Pinned(programs) => programs.get_mut(name),
        };
        program.with_context(|| format!("the BPF object has no program {name}"))
    }

    /// Has the kernel verify a program of a loaded object.
    ///
    /// # Errors
    /// When the object lacks it, or the kernel refuses it.
    pub fn load(&mut self, hook: &Hook, kernel: &aya::Btf) -> Result<()> {
        verify(self.get_mut(hook.program)?, hook, kernel)
    }

    /// Has the kernel verify the programs of `hooks`; how each fared. Those that the object lacks are left
    /// out.
    pub fn load_all(&mut self, hooks: &[&'static Hook], kernel: &aya::Btf) -> Verified {
        let mut all = self.all_mut();
        let todo = hooks.iter().filter_map(|hook| Some((*hook, all.remove(hook.program)?)));
        verify_all(todo.collect(), kernel)
    }

    fn all_mut(&mut self) -> BTreeMap<&str, &mut Program> {
        match &mut self.origin {
            Origin::Loaded(ebpf) => ebpf.programs_mut().collect(),
            Origin::Pinned(programs) => programs.iter_mut().map(|(name, it)| (*name, it)).collect(),
        }
    }

    /// Attaches a program that is loaded; nothing where it is attached.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn attach(&mut self, hook: &Hook) -> Result<()> {
        if self.is_attached(hook.program) {
            return Ok(());
        }
        let period = match hook.point {
            Point::Software(_, Period::Sampled) => self.sample_every,
            _ => 1,
        };
        let program = self.get_mut(hook.program)?;
        let links = attach(program, hook, period);
        let links = links.map_err(|error| anyhow::anyhow!("{error:#}"))?;
        let links = match &self.pins {
            Some(dir) => pin_links(dir, hook.program, links)?,
            None => links,
        };
        self.attached.insert(hook.program, links);
        Ok(())
    }

    /// Detaches a program; it stays loaded.
    ///
    /// # Errors
    /// When an attachment's pin cannot be removed.
    pub fn detach(&mut self, name: &str) -> Result<()> {
        self.attached.remove(name);
        let Some(dir) = &self.pins else { return Ok(()) };
        for path in link_pins(dir, name)? {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }

    /// Whether a program is attached.
    pub fn is_attached(&self, name: &str) -> bool {
        self.attached.contains_key(name)
    }

    /// Pins programs and attachments in `dir`: they stay when this process ends. Gives the programs whose
    /// attachment this kernel cannot pin.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn pin(&mut self, dir: &Path) -> Result<Vec<&'static str>> {
        let names: Vec<_> = self.attached.keys().copied().collect();
        for &name in &names {
            let path = dir.join(program_pin(name));
            let program = self.get_mut(name)?;
            program.pin(&path).with_context(|| format!("cannot pin {}", path.display()))?;
        }
        let mut unpinned = Vec::new();
        for name in names {
            let links = self.attached.remove(name).unwrap_or_default();
            let links = pin_links(dir, name, links)?;
            if links.iter().any(|link| matches!(link, Link::Event(_))) {
                unpinned.push(name);
            }
            self.attached.insert(name, links);
        }
        Ok(unpinned)
    }

    /// Attachments are, and new ones will be, pinned in `dir`.
    pub fn set_pins(&mut self, dir: &Path) {
        self.pins = Some(dir.to_owned());
    }
}

/// File of a pinned program; bpffs refuses dots.
fn program_pin(name: &str) -> String {
    format!("program-{name}")
}

/// Files of a program's pinned attachments.
fn link_pins(dir: &Path, name: &str) -> Result<Vec<PathBuf>> {
    let prefix = format!("link-{name}-");
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let entries: io::Result<Vec<_>> = entries.collect();
    let is_link = |file: &str| {
        file.strip_prefix(&prefix).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
    };
    let found = entries.with_context(|| format!("cannot read {}", dir.display()))?;
    let found = found.iter().filter(|entry| entry.file_name().to_str().is_some_and(is_link));
    Ok(found.map(fs::DirEntry::path).collect())
}

fn pin_links(dir: &Path, name: &str, links: Vec<Link>) -> Result<Vec<Link>> {
    let mut pinned = Vec::new();
    for (number, link) in links.into_iter().enumerate() {
        pinned.push(match link {
            Link::Fd(link) => {
                let path = dir.join(format!("link-{name}-{number}"));
                let link =
                    link.pin(&path).with_context(|| format!("cannot pin {}", path.display()))?;
                Link::Fd(link.into())
            }
            event @ Link::Event(_) => event,
        });
    }
    Ok(pinned)
}

fn attach(program: &mut Program, hook: &Hook, period: u64) -> Result<Vec<Link>> {
    let told = |error: aya::programs::ProgramError| anyhow::anyhow!("{}", with_causes(&error));
    match (program, hook.point) {
        (Program::BtfTracePoint(program), Point::Tracepoint(..)) => {
            let id = program.attach().map_err(told)?;
            Ok(vec![Link::Fd(program.take_link(id).map_err(told)?.into())])
        }
        (Program::FEntry(program), Point::FunctionEntry(_)) => {
            let id = program.attach().map_err(told)?;
            Ok(vec![Link::Fd(program.take_link(id).map_err(told)?.into())])
        }
        (Program::FExit(program), Point::FunctionExit(..)) => {
            let id = program.attach().map_err(told)?;
            Ok(vec![Link::Fd(program.take_link(id).map_err(told)?.into())])
        }
        (Program::TracePoint(program), Point::Event(group, name)) => {
            let id = program.attach(group, name).map_err(told)?;
            let link = program.take_link(id).map_err(told)?;
            Ok(vec![Link::Fd(link.try_into()?)])
        }
        (Program::PerfEvent(program), Point::Software(event, _)) => {
            let cpus = online_cpus().map_err(|(path, error)| {
                anyhow::Error::new(error).context(format!("cannot read {path}"))
            })?;
            let policy = SamplePolicy::Period(period);
            let mut links = Vec::new();
            let mut has_links = true;
            for cpu in cpus {
                let mut attach = || {
                    let scope = PerfEventScope::AllProcessesOneCpu { cpu };
                    let config = PerfEventConfig::Software(event);
                    let id = program.attach(config, scope, policy, false).map_err(told)?;
                    program.take_link(id).map_err(told)
                };
                if has_links && let Ok(link) = FdLink::try_from(attach()?) {
                    links.push(Link::Fd(link));
                    continue;
                }
                // Trying took the attachment with it.
                has_links = false;
                links.push(Link::Event(attach()?));
            }
            Ok(links)
        }
        _ => bail!("program {} is of another kind than its hook", hook.program),
    }
}
