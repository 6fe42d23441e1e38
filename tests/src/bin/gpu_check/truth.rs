//! What others say of the same GPU: the driver's counter of energy, asked past jobtrace, nvidia-smi, and the files
//! that a process has open.

use std::{collections::BTreeMap, ffi::OsString, fs, path::PathBuf, process::Command};

use nvml_wrapper::Nvml;

/// Millijoules since the driver was loaded; lets go of the driver at once. `None`: not told.
pub fn energy_millijoules() -> Option<u64> {
    let nvml = Nvml::builder().lib_path("libnvidia-ml.so.1".as_ref()).init().ok()?;
    nvml.device_by_index(0).ok()?.total_energy_consumption().ok()
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

/// All files that a process has open, but for maps and programs in the kernel: those come and go with jobs.
pub fn files(pid: u32) -> usize {
    open_files(pid).filter(|to| !to.to_string_lossy().contains("bpf")).count()
}

fn open_files(pid: u32) -> impl Iterator<Item = PathBuf> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| fs::read_link(file.path()).ok())
}

/// The thread of an agent that samples: another one after each reload.
pub fn sampler_thread(pid: u32) -> Option<OsString> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut samplers = threads.filter(|thread| {
        fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name.trim() == "gpu")
    });
    samplers.next().map(|thread| thread.file_name())
}
