//! One look at the devices and at what they tell, for somebody who waits for it.

use std::{
    path::PathBuf,
    sync::mpsc::{RecvTimeoutError, sync_channel},
    thread,
    time::Duration,
};

use nvml_wrapper::{Nvml, error::NvmlError};

use super::{
    failure::is_absent,
    nvml::{Gpu, Known},
};

/// A driver that has to wake its devices first takes seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
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

/// Looks, through `library` or else the loader's `libnvidia-ml.so.1`.
pub fn look(library: Option<PathBuf>) -> Found {
    let (tell, told) = sync_channel(1);
    let work = move || {
        let found = ask(library).unwrap_or_else(|error| match is_absent(&error) {
            true => Found::Nothing,
            false => Found::Failure(error.to_string()),
        });
        // Nobody listens any more where it took too long.
        let _ = tell.send(found);
    };
    if let Err(error) = thread::Builder::new().spawn(work) {
        return Found::Failure(error.to_string());
    }
    match told.recv_timeout(PATIENCE) {
        Ok(found) => found,
        Err(RecvTimeoutError::Timeout) => Found::Silence,
        Err(RecvTimeoutError::Disconnected) => Found::Failure("the library panicked".into()),
    }
}

fn ask(library: Option<PathBuf>) -> Result<Found, NvmlError> {
    let mut builder = Nvml::builder();
    if let Some(library) = &library {
        builder.lib_path(library.as_os_str());
    }
    let nvml = builder.init()?;
    let (count, driver) = (nvml.device_count()?, nvml.sys_driver_version()?);
    if count == 0 {
        return Ok(Found::Nothing);
    }
    let mut known = Known::default();
    let (mut names, mut lacking) = (Vec::new(), Vec::new());
    for index in 0..count {
        match Gpu::open(&nvml, index) {
            Ok(gpu) => {
                names.push(gpu.name());
                match gpu.read(&mut known) {
                    Ok((_, notes)) => lacking.extend(notes),
                    Err(error) => lacking.push(format!("{} fails: {error}", gpu.name())),
                }
            }
            Err(error) => lacking.push(format!("GPU {index} could not be opened ({error})")),
        }
    }
    Ok(Found::Gpus { driver, names, lacking })
}
