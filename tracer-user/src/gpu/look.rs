//! One look at the devices and at what they tell, for somebody who waits for it.

use std::{
    path::{Path, PathBuf},
    sync::mpsc::{RecvTimeoutError, sync_channel},
    thread,
    time::Duration,
};

use super::{
    cards::{Cards, FoundCard},
    nvml::{Nvidia, sentence},
    source::{Answers, GpuSource, Presence},
};

/// A driver that has to wake its devices first takes seconds. One that resets a card may not answer at all.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// None has come in 10 s.
    Silence,
    /// None can come; why.
    Failure(String),
}

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
        /// Devices that are there and do not answer, a sentence each.
        lost: Vec<String>,
        /// How many more there are that the caller may not open.
        refused: u32,
    },
}

/// Looks, through `library` or else the loader's `libnvidia-ml.so.1`; /proc is below `root`.
pub fn look(library: Option<PathBuf>, root: PathBuf) -> FoundGpus {
    match in_time(move || ask(library, root)) {
        Ok(found) => found,
        Err(NoAnswer::Silence) => FoundGpus::Silence,
        Err(NoAnswer::Failure(why)) => FoundGpus::Failure(why),
    }
}

fn ask(library: Option<PathBuf>, root: PathBuf) -> FoundGpus {
    let mut nvidia = Nvidia::new(library, PATIENCE, &root.join("proc"));
    let mut answers = Answers::default();
    if nvidia.read(&mut answers) == Presence::Absent {
        return FoundGpus::Nothing;
    }
    let lost: Vec<_> = answers.failures.into_iter().map(|(_, text)| text).collect();
    let Some(driver) = nvidia.driver() else { return FoundGpus::Failure(lost.join("; ")) };
    let devices = nvidia.devices();
    let names = devices.iter().map(|(name, _)| name.clone()).collect();
    // What is said of a device that answers, is among what it lacks.
    let of_each: Vec<String> = devices
        .iter()
        .flat_map(|(name, lacks)| lacks.iter().map(|lack| sentence(name, lack)))
        .collect();
    let said = answers.notes.into_iter().map(|(_, text)| text);
    let mut lacking = together(&devices);
    lacking.extend(said.filter(|text| !of_each.contains(text)));
    FoundGpus::Gpus { driver, names, lacking, lost, refused: nvidia.refused() }
}

/// What devices do not tell, a sentence for all that lack the same.
fn together(devices: &[(String, Vec<String>)]) -> Vec<String> {
    let mut lacks: Vec<&String> = Vec::new();
    for lack in devices.iter().flat_map(|(_, lacks)| lacks) {
        if !lacks.contains(&lack) {
            lacks.push(lack);
        }
    }
    let told = |lack: &String| {
        let with = devices.iter().filter(|(_, lacks)| lacks.contains(lack));
        let names: Vec<_> = with.map(|(name, _)| name.as_str()).collect();
        match &names[..] {
            [name] => sentence(name, lack),
            all if all.len() == devices.len() => {
                format!("no GPU of the {} reports its {lack}", all.len())
            }
            [some @ .., last] => {
                format!("{} and {last} do not report their {lack}", some.join(", "))
            }
            [] => String::new(),
        }
    };
    lacks.into_iter().map(told).collect()
}

/// All GPUs but NVIDIA's; sys and proc are below `root`.
///
/// # Errors
/// When the kernel's files do not answer.
pub fn look_at_cards(root: &Path) -> Result<Vec<FoundCard>, NoAnswer> {
    let root = root.to_owned();
    in_time(move || {
        let mut cards = Cards::new(&root);
        cards.read(&mut Answers::default());
        cards.devices()
    })
}

/// What `work` gives, unless that takes too long: it is left behind then.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, NoAnswer> {
    let (tell, told) = sync_channel(1);
    let work = move || {
        // Nobody listens any more where it took too long.
        let _ = tell.send(work());
    };
    thread::Builder::new().spawn(work).map_err(|error| NoAnswer::Failure(error.to_string()))?;
    told.recv_timeout(PATIENCE).map_err(|error| match error {
        RecvTimeoutError::Timeout => NoAnswer::Silence,
        RecvTimeoutError::Disconnected => NoAnswer::Failure("the driver's library panicked".into()),
    })
}
