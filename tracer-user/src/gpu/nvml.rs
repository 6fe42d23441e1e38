//! NVIDIA's devices, through its library: opened, read, and opened anew for the sake of a device that was
//! lost. Refuses to wait between two readings: it is called when one is due.

mod asker;
mod cursor;
mod fields;
mod gpm;
mod gpu;
mod holders;
mod library;
mod lists;
mod memory;
mod pace;
mod processes;
mod procs;
mod utilization;
mod xids;

pub use asker::sentence;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use nvml_wrapper::error::NvmlError;

use self::{
    asker::Known,
    gpu::Gpu,
    library::{Absence, Library},
    lists::Lists,
    procs::Procs,
};
use crate::gpu::{
    failure::words,
    source::{Answers, GpuSource, Presence},
};

/// Longest time until a lost device is looked for again.
const MAX_BACK_OFF: Duration = Duration::from_secs(300);
/// Readings without a loss after which the next one is the first again.
const WELL: u32 = 60;

/// All of NVIDIA's devices.
pub struct Nvidia {
    library: Option<PathBuf>,
    procs: Procs,
    first_back_off: Duration,
    back_off: Duration,
    known: Known,
    open: Option<Open>,
    /// After a failure: the library is left alone until then.
    closed_until: Option<Instant>,
}

/// The library with its devices; what borrows it comes first.
struct Open {
    gpus: Vec<Gpu>,
    /// Devices that the caller may not open.
    refused: u32,
    readings: u32,
    lost_at: Option<Instant>,
    library: Library,
}

impl Nvidia {
    /// Nothing is opened yet. `library` is by default the loader's; what is lost is looked for after
    /// `back_off`, then after twice as long, and so on; /proc is at `proc`.
    pub fn new(library: Option<PathBuf>, back_off: Duration, proc: &Path) -> Self {
        Self {
            library,
            procs: Procs::new(proc),
            first_back_off: back_off,
            back_off,
            known: Known::default(),
            open: None,
            closed_until: None,
        }
    }

    /// The driver's version, once a reading has opened it.
    pub fn driver(&self) -> Option<String> {
        self.open.as_ref()?.library.nvml().sys_driver_version().ok()
    }

    /// Number and model of each whole device that answers, and all that it does not tell, as [`sentence`] takes it.
    pub fn devices(&self) -> Vec<(String, Vec<String>)> {
        let gpus = self.open.iter().flat_map(|open| &open.gpus);
        gpus.map(|gpu| (gpu.name(), self.known.lacking(gpu.uuid()))).collect()
    }

    /// How many devices the caller may not open.
    pub fn refused(&self) -> u32 {
        self.open.as_ref().map_or(0, |open| open.refused)
    }

    fn close_if_due(&mut self) {
        let Some(open) = &self.open else { return };
        if open.lost_at.is_some_and(|at| at.elapsed() >= self.back_off) {
            let was_well = open.readings >= WELL;
            let next = if was_well { self.first_back_off } else { self.back_off * 2 };
            self.back_off = next.min(MAX_BACK_OFF);
            self.open = None;
        }
    }
}

impl GpuSource for Nvidia {
    fn read(&mut self, answers: &mut Answers) -> Presence {
        self.close_if_due();
        if self.open.is_none() {
            if self.closed_until.is_some_and(|until| Instant::now() < until) {
                return Presence::Here;
            }
            match Library::open(self.library.as_deref()) {
                Ok(library) => {
                    self.known.ask_again();
                    self.open = Some(Open::new(library, answers));
                }
                Err(Absence::None) => return Presence::Absent,
                Err(Absence::Failed(error)) => {
                    answers.say_failed(format!(
                        "GPU values are unknown: NVML reports: {} (see nvidia-smi)",
                        words(&error)
                    ));
                    self.closed_until = Some(Instant::now() + self.back_off);
                    self.back_off = (self.back_off * 2).min(MAX_BACK_OFF);
                }
            }
        }
        if let Some(open) = &mut self.open {
            open.read(&mut self.known, &self.procs, answers);
        }
        Presence::Here
    }
}

impl Open {
    fn new(library: Library, answers: &mut Answers) -> Self {
        let (mut gpus, mut lost_at, mut refused) = (Vec::new(), None, 0);
        let nvml = library.nvml();
        let lists = Lists::of(&nvml.sys_driver_version().unwrap_or_default());
        for index in 0..nvml.device_count().unwrap_or(0) {
            match Gpu::open(nvml, index, lists) {
                Ok(gpu) => gpus.push(gpu),
                // Not this caller's to see, as in a container with some of the devices.
                Err(NvmlError::NoPermission) => refused += 1,
                Err(error) => {
                    answers
                        .say_failed(format!("GPU {index} could not be opened ({})", words(&error)));
                    lost_at = Some(Instant::now());
                }
            }
        }
        Self { gpus, refused, readings: 0, lost_at, library }
    }

    /// A device that is lost is left out from then on.
    fn read(&mut self, known: &mut Known, procs: &Procs, answers: &mut Answers) {
        let before = self.gpus.len();
        self.gpus.retain_mut(|gpu| match gpu.read(known, procs, answers) {
            Ok(()) => true,
            Err(error) => {
                let text =
                    format!("{} was lost for a time or for good ({})", gpu.name(), words(&error));
                match self.readings {
                    // Who was on it, nobody knows.
                    0 => answers.say_failed(text),
                    _ => answers.say_lost(gpu.uuid(), text),
                }
                false
            }
        });
        if self.lost_at.is_none() {
            self.readings = self.readings.saturating_add(1);
            self.lost_at = (self.gpus.len() < before).then(Instant::now);
        }
    }
}
