//! The GPUs of the command.

use std::path::Path;

use crate::{
    base::say::say,
    cgroup::job::JobCgroup,
    gpu::{self, Sampler},
    model::lease::Lease,
};

use super::identity::LEASE;

/// Waits for the next reading of the GPUs; for ever where they are not sampled.
pub async fn reading(gpus: Option<&Sampler<Lease>>) {
    match gpus {
        Some(gpus) => gpus.reading().await,
        None => std::future::pending().await,
    }
}

/// The sampling of the GPUs that processes of the command are on; where there are none, it ends by itself.
pub fn start(cgroup: &JobCgroup, root: &Path) -> Option<Sampler<Lease>> {
    let name = cgroup.places().own().next()?.directory.file_name()?.to_str()?.to_owned();
    let owner = move |process: &gpu::ProcessReading| {
        gpu::is_inside(&process.cgroups, &name).then_some(LEASE)
    };
    let settings =
        gpu::SamplerSettings { root: root.to_owned(), ..gpu::SamplerSettings::default() };
    let started = Sampler::start(settings, owner);
    started.map_err(|error| say(format_args!("GPUs are not sampled: {error}"))).ok()
}
