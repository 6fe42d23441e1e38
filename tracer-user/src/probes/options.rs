//! What to load: the programs that always run, and what is set in them.

use std::{borrow::Cow, path::PathBuf};

use crate::{
    base::layout::Layout,
    bpf::{error::LoadError, pins},
    model::lease::Slot,
};

/// The programs, built by `cargo xtask ebpf`.
pub static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tracer-ebpf/object/always.bpf.o"
));

/// Which page faults are timed.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Default,
    clap::ValueEnum,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum FaultMode {
    /// Waits in major faults only; nothing runs on a minor fault.
    Major,
    /// Also the latencies of minor (sampled) and major faults.
    #[default]
    Full,
}

/// What is recorded about waits.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Default,
    clap::ValueEnum,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum WaitMode {
    /// Only how long tasks sleep and are blocked.
    Off,
    /// Also the causes, by system call.
    Calls,
    /// Also the file systems that they wait for (job_wait).
    #[default]
    Files,
}

/// What to load.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which faults are timed.
    pub faults: FaultMode,
    /// What is recorded about waits.
    pub waits: WaitMode,
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
            waits: WaitMode::Files,
            log_level: 0,
            object: None,
            most_slots: tracer_ebpf::ids::MOST_SLOTS,
            whole_node: false,
            pin: None,
            without: &[],
        }
    }

    /// The object to load.
    pub(super) fn object(&self) -> Result<Cow<'static, [u8]>, LoadError> {
        let Some(path) = &self.object else { return Ok(OBJECT.into()) };
        let read = std::fs::read(path);
        Ok(read.map_err(|error| LoadError::Object(path.clone(), error.into()))?.into())
    }

    /// Why the object cannot be loaded.
    pub(super) fn refused(&self, error: anyhow::Error) -> LoadError {
        match &self.object {
            Some(path) => LoadError::Object(path.clone(), error),
            None => LoadError::of(&format!("{error:#}")),
        }
    }

    /// Name of the set of programs from `object`, loaded so for `layout`.
    pub(super) fn set_name(&self, object: &[u8], layout: &Layout) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let Self { faults, waits, most_slots, whole_node, .. } = self;
        let settings =
            format!("{version} {layout:?} {faults:?} {waits:?} {most_slots} {whole_node}");
        pins::set_name(object, &settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_layout_or_option_is_another_set() {
        let layout =
            Layout { tasks_hierarchy: 0, tasks_controller: None, block_hierarchy: Some(0) };
        let options = Options::new(FaultMode::Major);
        let base = options.set_name(b"a", &layout);
        assert_eq!(base, options.clone().set_name(b"a", &layout));
        assert_ne!(base, options.set_name(b"b", &layout));
        assert_ne!(
            base,
            Options { waits: WaitMode::Off, ..options.clone() }.set_name(b"a", &layout)
        );
        assert_ne!(base, Options { most_slots: 5, ..options.clone() }.set_name(b"a", &layout));
        assert_ne!(base, options.set_name(b"a", &Layout { tasks_hierarchy: 3, ..layout.clone() }));
    }
}
