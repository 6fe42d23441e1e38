//! What others say of the same GPU: the driver's counter of energy, asked past jobtrace, nvidia-smi, and the files
//! that a process has open.

use std::{collections::BTreeMap, fs, path::PathBuf, process::Command};

use anyhow::{Result, ensure};
use nvml_wrapper::{Nvml, enum_wrappers::device::ComputeMode, error::NvmlError};

/// The driver; an error where it has no GPU.
pub fn driver() -> Result<Nvml> {
    let nvml = Nvml::builder().lib_path("libnvidia-ml.so.1".as_ref()).init()?;
    ensure!(nvml.device_count()? > 0, "the driver has none");
    Ok(nvml)
}

/// Why the first GPU cannot be checked.
pub enum Obstacle {
    /// Nothing is wrong with it.
    LeftOut(String),
    /// It does not work.
    Wrong(String),
}

/// What stands in the way of checking the first GPU, if anything does.
pub fn obstacle() -> Option<Obstacle> {
    use Obstacle::{LeftOut, Wrong};
    let nvml = match Nvml::builder().lib_path("libnvidia-ml.so.1".as_ref()).init() {
        Ok(nvml) => nvml,
        Err(
            error @ (NvmlError::LibloadingError(_)
            | NvmlError::LibraryNotFound
            | NvmlError::DriverNotLoaded),
        ) => return Some(LeftOut(format!("no NVIDIA GPU here: {error}"))),
        Err(error) => return Some(Wrong(format!("the driver does not work: {error}"))),
    };
    if nvml.device_count().is_ok_and(|count| count == 0) {
        return Some(LeftOut("no NVIDIA GPU here: the driver has none".into()));
    }
    let gpu = match nvml.device_by_index(0).and_then(|gpu| gpu.memory_info().map(|_| gpu)) {
        Ok(gpu) => gpu,
        Err(error) => return Some(Wrong(format!("GPU 0 cannot be used: {error}"))),
    };
    if gpu.mig_mode().is_ok_and(|mode| mode.current != 0) {
        return Some(LeftOut("MIG is on; nvidia-smi -i 0 -mig 0 turns it off".into()));
    }
    let busy = |mode| format!("its compute mode is {mode:?}; nvidia-smi -i 0 -c 0 resets it");
    match gpu.compute_mode() {
        Ok(ComputeMode::Default) | Err(_) => None,
        Ok(mode) => Some(LeftOut(busy(mode))),
    }
}

/// The first GPU's uuid: CUDA may count in another order.
pub fn uuid() -> Option<String> {
    driver().ok()?.device_by_index(0).ok()?.uuid().ok()
}

/// How many GPUs the driver has.
pub fn devices() -> u32 {
    driver().and_then(|nvml| Ok(nvml.device_count()?)).unwrap_or(1)
}

/// Millijoules since the driver was loaded; lets go of the driver at once. `None`: not told.
pub fn energy_millijoules() -> Option<u64> {
    driver().ok()?.device_by_index(0).ok()?.total_energy_consumption().ok()
}

/// Processes that compute on the first GPU, with their memory in MiB; `None` without nvidia-smi.
pub fn smi_processes() -> Option<BTreeMap<u32, u64>> {
    let lines = smi("--query-compute-apps=pid,used_gpu_memory")?;
    let process = |line: &str| {
        let (pid, mib) = line.split_once(',')?;
        Some((pid.trim().parse().ok()?, mib.trim().parse().unwrap_or(0)))
    };
    Some(lines.lines().filter_map(process).collect())
}

/// Whether the driver stays initialised when nobody uses the GPU; `None` without nvidia-smi.
pub fn is_persistent() -> Option<bool> {
    Some(smi("--query-gpu=persistence_mode")?.trim() == "Enabled")
}

fn smi(query: &str) -> Option<String> {
    let words = [query, "--format=csv,noheader,nounits", "-i", "0"];
    let output = Command::new("nvidia-smi").args(words).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Files of the driver's that a process has open.
pub fn driver_files(pid: u32) -> usize {
    let is_drivers = |to: &PathBuf| {
        to.file_name().is_some_and(|name| name.to_string_lossy().starts_with("nvidia"))
    };
    open_files(pid).filter(is_drivers).count()
}

/// All files that a process has open, but for maps and programs in the kernel and files of cgroups: those come and
/// go with jobs.
pub fn files(pid: u32) -> Vec<PathBuf> {
    let is_of_jobs = |to: &str| ["bpf", "/cgroup/"].iter().any(|part| to.contains(part));
    let mut files: Vec<PathBuf> =
        open_files(pid).filter(|to| !is_of_jobs(&to.to_string_lossy())).collect();
    files.sort();
    files
}

fn open_files(pid: u32) -> impl Iterator<Item = PathBuf> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| fs::read_link(file.path()).ok())
}
