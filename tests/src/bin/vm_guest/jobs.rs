//! Jobs of Slurm's shape in whatever hierarchies this boot has.

use std::fs;

use anyhow::{Context, Result};
use jobtrace::cgroup::hierarchies::Hierarchies;
use jobtrace_tests::{
    agent::Agent,
    rig::shaped::{Directories, Shaped},
};

/// The hierarchy by which the agent tells jobs apart: v2, or the v1 controller that sites use.
pub fn hierarchy() -> &'static str {
    let found = Hierarchies::read().unwrap();
    if found.v2.is_some() {
        return "v2";
    }
    if found.v1("memory").is_some() { "memory" } else { "freezer" }
}

/// An agent that reads once a second.
///
/// # Errors
/// When it does not start.
pub fn agent() -> Result<Agent> {
    let hierarchy = hierarchy();
    Agent::start(&format!("hierarchy = \"{hierarchy}\"\nslots = 64\nspare_slots = 16"))
}

/// Where jobs can be made, in every hierarchy that counts something of them.
pub fn place() -> Shaped {
    let found = Hierarchies::read().unwrap();
    if found.v2.is_some() {
        return Shaped::make(&[""]);
    }
    let more = ["blkio", "cpuacct"].into_iter().filter(|name| found.v1(name).is_some());
    Shaped::make(&[hierarchy()].into_iter().chain(more).collect::<Vec<_>>())
}

/// Directories of a job of root's, which v2 charges for memory and block I/O.
///
/// # Errors
/// When a controller cannot be switched on.
pub fn make(place: &Shaped, job: u32) -> Result<Directories> {
    let made = place.job(0, job, "step_0");
    let Some(v2) = Hierarchies::read()?.v2 else { return Ok(made) };
    let above: Vec<_> = made.0[0].ancestors().skip(1).collect();
    for directory in above.iter().rev().filter(|directory| directory.starts_with(&v2.mount)) {
        let file = directory.join("cgroup.subtree_control");
        fs::write(&file, "+io +memory").with_context(|| format!("{}", file.display()))?;
    }
    Ok(made)
}
