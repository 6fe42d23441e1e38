//! What the live ring could leave on the machine: BPF programs and links, processes, cgroups and
//! mounts of ours, each as a line of text, compared before and after.

use crate::bpf;
use crate::process::{as_root, is_root, output, target_dir};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use xtask::root;
use xtask::source_digest::OBJECT;

/// How long the kernel may take to let go of what was closed.
const PATIENCE: Duration = Duration::from_secs(5);

/// What of ours is on the machine, in words.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Residue(BTreeSet<String>);

impl Residue {
    /// Reads it here if we are root, else through sudo.
    ///
    /// # Errors
    /// When BPF's ids cannot be listed.
    pub fn read_as_root() -> Result<Self> {
        if is_root() {
            return Self::read();
        }
        let text = output(as_root(target_dir().join("debug/xtask"), &[]).arg("residue"))?;
        Ok(Self(text.lines().map(str::to_owned).collect()))
    }

    fn read() -> Result<Self> {
        let mut lines = BTreeSet::new();
        let ours = programs(&mut lines)?;
        for (id, program) in bpf::links()? {
            if ours.contains(&program) {
                lines.insert(format!("BPF link {id} of program {program}"));
            }
        }
        processes(&mut lines);
        cgroups(Path::new("/sys/fs/cgroup"), &mut lines);
        mounts(&mut lines)?;
        Ok(Self(lines))
    }

    fn since<'a>(&'a self, before: &'a Self) -> Vec<&'a str> {
        self.0.difference(&before.0).map(String::as_str).collect()
    }
}

/// Prints what is there, one thing a line: what [`Residue::read_as_root`] reads through sudo.
///
/// # Errors
/// When BPF's ids cannot be listed.
pub fn print() -> Result<()> {
    for line in &Residue::read()?.0 {
        println!("{line}");
    }
    Ok(())
}

/// Fails if something of ours is there now that was not before, after some patience.
///
/// # Errors
/// Names what was left behind.
pub fn check(before: &Residue) -> Result<()> {
    let start = Instant::now();
    loop {
        let now = Residue::read_as_root()?;
        let left = now.since(before);
        if left.is_empty() {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            bail!("left behind: {}", left.join("; "));
        }
        sleep(Duration::from_millis(200));
    }
}

/// Programs are ours when the object holds their name: other tracers come and go on a live machine.
fn programs(lines: &mut BTreeSet<String>) -> Result<BTreeSet<u32>> {
    let object = fs::read(root().join(OBJECT)).unwrap_or_default();
    let mut ours = BTreeSet::new();
    for (id, program) in bpf::programs()? {
        if is_symbol(&object, &program.name) {
            lines.insert(format!("BPF program {id} ({})", program.name));
            ours.insert(id);
        }
    }
    Ok(ours)
}

/// Whether a name, or for one that the kernel has cut one that starts so, is in the object's table.
fn is_symbol(object: &[u8], name: &str) -> bool {
    const CUT: usize = 15;
    let mut wanted = vec![0];
    wanted.extend(name.as_bytes());
    if name.len() < CUT {
        wanted.push(0);
    }
    !name.is_empty() && object.windows(wanted.len()).any(|window| window == wanted)
}

/// Processes whose program lies in our target folder and is called jobtrace something.
fn processes(lines: &mut BTreeSet<String>) {
    let target = target_dir();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        // Kernel threads have no program, and a process may end meanwhile.
        let Ok(program) = fs::read_link(entry.path().join("exe")) else { continue };
        let ours = program.file_name().is_some_and(|n| n.to_string_lossy().starts_with("jobtrace"));
        if ours && program.starts_with(&target) {
            lines.insert(format!(
                "process {} ({})",
                entry.file_name().display(),
                program.display()
            ));
        }
    }
}

fn cgroups(folder: &Path, lines: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // Not followed: cgroup v1 has links such as cpu -> cpu,cpuacct.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name().to_string_lossy().contains("jobtrace") {
            lines.insert(format!("cgroup {}", entry.path().display()));
        }
        cgroups(&entry.path(), lines);
    }
}

/// Mounts with our name or below our target folder.
fn mounts(lines: &mut BTreeSet<String>) -> Result<()> {
    let target = target_dir();
    let mounts = fs::read_to_string("/proc/self/mountinfo").context("read the mounts")?;
    for mount in mounts.lines().filter_map(|line| line.split(' ').nth(4)) {
        if mount.contains("jobtrace") || Path::new(mount).starts_with(&target) {
            lines.insert(format!("mount {mount}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_left_behind() {
        let set = |lines: &[&str]| Residue(lines.iter().map(|&line| line.to_owned()).collect());
        let before = set(&["cgroup /sys/fs/cgroup/jobtrace-old", "process 7 (/t/jobtrace)"]);
        let after = set(&["cgroup /sys/fs/cgroup/jobtrace-old", "BPF program 9 (sched_switch)"]);
        assert_eq!(after.since(&before), ["BPF program 9 (sched_switch)"]);
        assert!(before.since(&before).is_empty());
    }

    #[test]
    fn names_are_whole_or_cut_by_the_kernel() {
        let object = b"\0sched_switch\0block_rq_complete\0";
        assert!(is_symbol(object, "sched_switch"));
        assert!(is_symbol(object, "block_rq_comple"));
        assert!(!is_symbol(object, "sched_swit"));
        assert!(!is_symbol(object, "switch"));
        assert!(!is_symbol(object, ""));
    }
}
