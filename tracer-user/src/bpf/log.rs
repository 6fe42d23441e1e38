//! The programs' own rare warnings, for development: off unless asked for, and then off the hot paths
//! all the same.

use anyhow::{Context, Result};
use aya::Ebpf;
use aya_log::EbpfLogger;
use log::{Log, Metadata, Record};

/// Prints what the programs log.
struct Stderr;

impl Log for Stderr {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        eprintln!("jobtrace: kernel side, {}: {}", record.level(), record.args());
    }

    fn flush(&self) {}
}

/// The programs' log.
pub struct BpfLog(EbpfLogger<Stderr>);

impl BpfLog {
    /// Opens the log of a loaded object.
    ///
    /// # Errors
    /// When the object logs nothing.
    pub fn open(ebpf: &mut Ebpf) -> Result<Self> {
        EbpfLogger::init_with_logger(ebpf, Stderr)
            .map(Self)
            .context("cannot read the log of the BPF programs")
    }

    /// Prints what came since.
    pub fn flush(&mut self) {
        self.0.flush();
    }
}
