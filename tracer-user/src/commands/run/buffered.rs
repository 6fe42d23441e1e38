//! Buffered writes under cgroup v1: the kernel charges to nobody what its own threads write back from the
//! page cache, unlike under v2. What may be missing of a command's is told.

use std::fs;

use crate::{base::units::bytes, cgroup::formats::parse_stat};

/// Less than this of buffered writes any command has: logs, small files.
const WORTH_BYTES: u64 = 1 << 20;

/// What is known of a run's buffered writes at its end.
#[derive(Clone, Copy)]
pub struct Written {
    /// By the command and those that were waited for, direct writes included.
    pub waited_for: u64,
    /// By all block requests charged to the job.
    pub charged: u64,
    /// By all of the node during the run, in the page cache; `None`: unknown.
    pub on_node: Option<u64>,
    /// Whether all of the job is among those that were waited for, since the command had no child.
    pub is_alone: bool,
}

impl Written {
    /// What the reader of the disk writes must know.
    pub fn notes(self) -> Vec<String> {
        let missing = self.waited_for.saturating_sub(self.charged);
        let own = (missing >= WORTH_BYTES).then(|| {
            format!(
                "up to {} that the command wrote are missing from the disk writes: under cgroup \
                 v1, buffered writes that the kernel writes back later are charged to no job",
                bytes(missing)
            )
        });
        // A child whose parent does not wait for it, or that lives on, tells nobody what it wrote. It is in
        // the node's number, which is the kernel's count of the same event.
        let others = self.on_node.map_or(u64::MAX, |on_node| on_node.saturating_sub(missing));
        let unwaited = (!self.is_alone && others >= WORTH_BYTES).then(|| {
            let amount =
                self.on_node.map_or("some data".into(), |_| format!("up to {}", bytes(others)));
            format!(
                "the disk writes may lack {amount} written by processes that no parent waited for, \
                 if there were any: cgroup v1 cannot separate theirs from everything else written \
                 on the node meanwhile"
            )
        });
        own.into_iter().chain(unwaited).collect()
    }
}

/// Bytes changed in the page cache of the node since its boot, to be written to storage. The kernel counts
/// each CPU's last half a MiB up to a second late.
pub fn on_node() -> Option<u64> {
    let pages = parse_stat(&fs::read_to_string("/proc/vmstat").ok()?, "nr_dirtied")?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn notes(waited_for: u64, charged: u64, on_node: Option<u64>, is_alone: bool) -> String {
        Written { waited_for, charged, on_node, is_alone }.notes().join("\n")
    }

    #[test]
    fn buffered_writes_are_told_of_where_they_are_missing() {
        for (changed, charged, told) in [
            (0, 0, None),
            (MIB - 1, 0, None),
            (64 * MIB, 0, Some("64 MiB")),
            (64 * MIB, 63 * MIB, Some("1 MiB")),
            (64 * MIB, 64 * MIB, None),
            (0, 64 * MIB, None),
        ] {
            // What others wrote is not the command's where it had no child.
            let note = notes(changed, charged, Some(900 * MIB), true);
            let start = told.map_or(String::new(), |told| format!("up to {told} "));
            assert!(note.starts_with(&start), "{changed} {charged}: {note}");
            assert_eq!(note.is_empty(), told.is_none(), "{changed} {charged}: {note}");
        }
    }

    #[test]
    fn what_processes_wrote_that_nobody_waited_for_is_told_of() {
        let of_orphans =
            |note: &str| note.starts_with("the disk writes may lack up to 64 MiB written by");
        let orphan = notes(0, 0, Some(64 * MIB), false);
        assert!(of_orphans(&orphan), "{orphan}");
        let beside_direct = notes(100 * MIB, 100 * MIB, Some(64 * MIB), false);
        assert!(of_orphans(&beside_direct), "direct writes are in no page cache: {beside_direct}");
        let beside_waited = notes(10 * MIB, 0, Some(74 * MIB), false);
        let (own, others) = beside_waited.split_once('\n').unwrap();
        assert!(own.starts_with("up to 10 MiB ") && of_orphans(others), "{beside_waited}");
        let unknown = notes(0, 0, None, false);
        assert!(unknown.starts_with("the disk writes may lack some data written by"), "{unknown}");
        assert_eq!(notes(0, 0, Some(MIB - 1), false), "");
        let all_waited = notes(64 * MIB, 0, Some(64 * MIB), false);
        assert!(!all_waited.contains('\n'), "nobody else wrote: {all_waited}");
    }

    #[test]
    fn the_node_counts_what_is_written() {
        let before = on_node().unwrap();
        let mut file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        std::io::Write::write_all(&mut file, &vec![1; 16 << 20]).unwrap();
        // Each CPU's last half a MiB comes late.
        let least = 15 * MIB;
        assert!(on_node().unwrap() - before >= least);
    }
}
