//! Jobs of a test that was killed: its servers died with it, but Slurm's jobs outlive their servers. The
//! next test that starts a Slurm ends them.

use std::{fs, path::Path};

use jobtrace::cgroup::hierarchies::Hierarchies;

use super::{super::cgroups, CONTROLLERS};

/// Kills what is in the cgroups of tests that are no more, and removes these.
pub(super) fn remove(found: &Hierarchies) {
    let v1 = CONTROLLERS.iter().filter_map(|name| Some(found.v1(name)?.mount.to_path_buf()));
    let v2 = found.v2.iter().map(|v2| v2.mount.join("system.slice"));
    for folder in v1.chain(v2) {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let is_dead = |pid: u32| !Path::new(&format!("/proc/{pid}")).exists();
            if !maker(&entry.file_name().to_string_lossy()).is_some_and(is_dead) {
                continue;
            }
            if let Err(error) = cgroups::remove(&entry.path()) {
                eprintln!("slurm: of a test that was killed: {error:#}");
            }
        }
    }
}

/// The process whose test made the cgroup of this name: `slurm_jobtrace12n0` or
/// `jobtrace12n0_slurmstepd.scope`.
fn maker(name: &str) -> Option<u32> {
    let node = match name.strip_prefix("slurm_") {
        Some(node) => node,
        None => name.strip_suffix("_slurmstepd.scope")?,
    };
    let (pid, count) = node.strip_prefix("jobtrace")?.split_once('n')?;
    count.parse::<u32>().ok()?;
    pid.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::maker;

    #[test]
    fn only_our_own_names_have_a_maker() {
        let rows = [
            ("slurm_jobtrace12n0", Some(12)),
            ("jobtrace12n3_slurmstepd.scope", Some(12)),
            ("slurm_node12n0", None),
            ("slurm_jobtrace12", None),
            ("jobtrace12n0", None),
            ("slurmstepd.scope", None),
        ];
        for (name, pid) in rows {
            assert_eq!(maker(name), pid, "{name}");
        }
    }
}
