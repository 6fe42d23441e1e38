//! Whose mounts the paths of a job are told by: those of a container are its own, and batch shells stay outside.

use std::{collections::BTreeMap, fs, os::unix::fs::MetadataExt, path::Path};

use crate::commands::agent::hierarchy::View;

/// Most processes of a job that are looked at.
pub const MOST_LOOKED_AT: usize = 1024;

/// One process: its number, its user, and its mount namespace where that can be told.
type Looked = (u32, u32, Option<String>);

/// The mount namespace that most of a job's processes are in.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Those in it.
    pub processes: Vec<u32>,
    /// Whether others are in another one.
    pub is_one_of_several: bool,
}

impl Space {
    /// That of the job of `owner` whose topmost directory is `root`, as it is now.
    pub fn of(view: &View, root: &Path, owner: Option<u32>) -> Self {
        let look = |pid: u32| {
            let uid = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
            let space = fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
            Some((pid, uid, space.map(|space| space.to_string_lossy().into_owned())))
        };
        let pids = view.some_pids(root, MOST_LOOKED_AT);
        Self::chosen(pids.into_iter().filter_map(look).collect(), owner)
    }

    /// What the owner runs counts, where that can be told, and not the scheduler's own process beside it. Of two with
    /// as many processes it is the one that came later.
    fn chosen(mut looked: Vec<Looked>, owner: Option<u32>) -> Self {
        let all: Vec<u32> = looked.iter().map(|(pid, ..)| *pid).collect();
        if looked.iter().any(|(_, uid, space)| Some(*uid) == owner && space.is_some()) {
            looked.retain(|(_, uid, _)| Some(*uid) == owner);
        }
        let mut spaces = BTreeMap::<String, Vec<u32>>::new();
        for (pid, _, space) in looked {
            if let Some(space) = space {
                spaces.entry(space).or_default().push(pid);
            }
        }
        let is_one_of_several = spaces.len() > 1;
        let most = spaces.into_values().max_by_key(|pids| (pids.len(), pids.first().copied()));
        Self { processes: most.unwrap_or(all), is_one_of_several }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_most_of_the_owners_processes_see_is_taken() {
        let chosen = |looked: &[(u32, u32, &str)]| {
            let looked = looked.iter().map(|(pid, uid, space)| {
                (*pid, *uid, Some(String::from(*space)).filter(|space| !space.is_empty()))
            });
            let space = Space::chosen(looked.collect(), Some(7));
            (space.processes, space.is_one_of_several)
        };
        // The step's daemon and its sleep, the batch shell, and what it runs in a container.
        let batch = [(10, 0, "node"), (11, 0, "node"), (12, 7, "node")];
        assert_eq!(chosen(&batch), (vec![12], false));
        let contained = [&batch[..], &[(13, 7, "own"), (14, 7, "own")]].concat();
        assert_eq!(chosen(&contained), (vec![13, 14], true));
        assert_eq!(chosen(&contained[..4]), (vec![13], true), "the later one");
        // Another user's alone, or none that can be told.
        assert_eq!(chosen(&batch[..2]), (vec![10, 11], false));
        assert_eq!(chosen(&[(10, 0, "node"), (12, 7, "")]), (vec![10], false));
        assert_eq!(chosen(&[(12, 7, ""), (13, 7, "")]), (vec![12, 13], false));
        assert_eq!(chosen(&[]), (vec![], false));
    }
}
