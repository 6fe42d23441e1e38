//! What /proc tells of a process in a driver's list: whether it still runs, and whether it is the server of
//! MPS, which works for its clients.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::base::identity::has_all_pids;

/// Beginning of the server's name, as long as the kernel keeps one.
const MPS_SERVER: &str = "nvidia-cuda-mps";

/// The processes of the node.
pub struct Procs {
    proc: PathBuf,
    /// Whether what is not there does not run, rather than being hidden.
    is_complete: bool,
}

impl Procs {
    /// Those below `proc`.
    pub fn new(proc: &Path) -> Self {
        // The first process is the first that hidepid hides.
        let is_complete = has_all_pids(proc) && fs::read(proc.join("1/stat")).is_ok();
        Self { proc: proc.to_owned(), is_complete }
    }

    /// Where they are.
    pub fn path(&self) -> &Path {
        &self.proc
    }

    /// Whether a listed process is somebody's who is on the device: drivers list processes that have gone
    /// for a while.
    pub fn counts(&self, pid: u32) -> bool {
        let Ok(stat) = fs::read(self.proc.join(pid.to_string()).join("stat")) else {
            return !self.is_complete;
        };
        let stat = String::from_utf8_lossy(&stat);
        let Some((name, rest)) = stat.rsplit_once(')') else { return true };
        let name = name.split_once('(').map_or("", |(_, name)| name);
        let is_dead = rest.trim_start().starts_with(['Z', 'X', 'x']);
        !is_dead && !name.starts_with(MPS_SERVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::identity;

    #[test]
    fn the_dead_and_the_server_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let put = |pid: &str, stat: &str| {
            fs::create_dir_all(folder.path().join(pid)).unwrap();
            fs::write(folder.path().join(pid).join("stat"), stat).unwrap();
        };
        for (pid, stat, counts) in [
            (10, "10 (python) S 1 10", true),
            (11, "11 (a) Z) R 1 10", true),
            (12, "12 (python) Z 1 10", false),
            (13, "13 (python) X 1 10", false),
            (14, "14 (nvidia-cuda-mps) S 1 10", false),
            (15, "", true),
        ] {
            put(&pid.to_string(), stat);
            assert_eq!(Procs::new(folder.path()).counts(pid), counts, "{stat}");
        }
        assert!(Procs::new(folder.path()).counts(16), "it may be hidden");
        fs::create_dir_all(folder.path().join("self/ns")).unwrap();
        std::os::unix::fs::symlink(identity::ROOT_NAMESPACE, folder.path().join("self/ns/pid"))
            .unwrap();
        assert!(Procs::new(folder.path()).counts(16), "others' may be hidden");
        put("1", "1 (init) S 0 1");
        assert!(!Procs::new(folder.path()).counts(16), "it has gone");
    }
}
