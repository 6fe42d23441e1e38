//! One look at the devices and at what they tell, for somebody who waits for it.

use std::{
    path::{Path, PathBuf},
    sync::mpsc::{RecvTimeoutError, sync_channel},
    thread,
    time::Duration,
};

use super::{
    cards::Cards,
    nvml::Nvidia,
    source::{Answers, GpuSource, Presence},
};

/// A driver that has to wake its devices first takes seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundGpus {
    /// No library, no driver or no device.
    Nothing,
    /// A driver that has not answered in 10 s.
    Silence,
    /// An answer that is none; why.
    Failure(String),
    /// Devices.
    Gpus {
        /// Version of the driver.
        driver: String,
        /// Number and model of each.
        names: Vec<String>,
        /// What they do not tell, a sentence each.
        lacking: Vec<String>,
    },
}

/// Looks, through `library` or else the loader's `libnvidia-ml.so.1`; /proc is below `root`.
pub fn look(library: Option<PathBuf>, root: PathBuf) -> FoundGpus {
    let (tell, told) = sync_channel(1);
    let work = move || {
        // Nobody listens any more where it took too long.
        let _ = tell.send(ask(library, root));
    };
    if let Err(error) = thread::Builder::new().spawn(work) {
        return FoundGpus::Failure(error.to_string());
    }
    match told.recv_timeout(PATIENCE) {
        Ok(found) => found,
        Err(RecvTimeoutError::Timeout) => FoundGpus::Silence,
        Err(RecvTimeoutError::Disconnected) => FoundGpus::Failure("the library panicked".into()),
    }
}

fn ask(library: Option<PathBuf>, root: PathBuf) -> FoundGpus {
    let mut nvidia = Nvidia::new(library, PATIENCE, &root.join("proc"));
    let mut answers = Answers::default();
    if nvidia.read(&mut answers) == Presence::Absent {
        return FoundGpus::Nothing;
    }
    let said: Vec<_> = answers.notes.into_iter().map(|(_, text)| text).collect();
    let Some(driver) = nvidia.driver() else { return FoundGpus::Failure(said.join("; ")) };
    let (names, lacking): (Vec<_>, Vec<_>) = nvidia.devices().into_iter().unzip();
    // What is said of a device that answers, is among what it lacks.
    let mut lacking: Vec<String> = lacking.into_iter().flatten().collect();
    let more: Vec<_> = said.into_iter().filter(|text| !lacking.contains(text)).collect();
    lacking.extend(more);
    FoundGpus::Gpus { driver, names, lacking }
}

/// A GPU that the kernel's files tell of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCard {
    /// `amd`, `intel`, else the kernel's driver.
    pub vendor: String,
    /// Number and model.
    pub name: String,
    /// What it does not tell, a sentence each.
    pub lacking: Vec<String>,
}

/// All GPUs but NVIDIA's; sys and proc are below `root`.
pub fn look_at_cards(root: &Path) -> Vec<FoundCard> {
    let mut cards = Cards::new(root);
    cards.read(&mut Answers::default());
    let found = |(vendor, name, lacking)| FoundCard { vendor, name, lacking };
    cards.devices().into_iter().map(found).collect()
}
