//! What the clients of network file systems count of their requests to servers, read from the kernel's texts and added
//! up from the begin on: the whole node's.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use super::{llite, mountstats};
use crate::{
    base::{mountinfo, mounts::Mounts, tag},
    model::{group::Group, tables::NODE_MOUNT},
};

/// Where Lustre's client shows its counts, each mount in a folder: from version 2.13 on, and before.
const LLITE: [&str; 2] = ["/sys/kernel/debug/lustre/llite", "/proc/fs/lustre/llite"];
/// Folders of Lustre's that are read.
const MOST_FOLDERS: usize = 64;

/// What is known of one kind of request.
pub type Counts = [Option<u64>; super::FIELDS.len()];

/// Type and place of a mount, and a kind of request.
type Key = [String; 3];

/// Counts of all mounts as they were read.
type Read = BTreeMap<Key, Counts>;

/// The requests since the first reading.
#[derive(Debug, Default)]
pub struct Servers {
    /// As last read, and what was added up.
    known: BTreeMap<Key, [Counts; 2]>,
    has_begun: bool,
    /// Lines of the last reading that have another form.
    strange_lines: usize,
}

impl Servers {
    /// Adds what came since the last reading. Mounts are those of `process` (`self`, a number), whose mountinfo is
    /// `text`, and are called as `names` has them. Where it has ended, nothing is added.
    pub fn take(&mut self, process: &str, text: &str, names: &mut Mounts) {
        let Ok(counts) = mountinfo::read_counts_of(process) else { return };
        let folders = LLITE.iter().flat_map(|folder| read_llite(Path::new(folder))).collect();
        let (read, strange_lines) = of_texts(&counts, folders, text, names);
        self.add(read);
        self.strange_lines = strange_lines;
    }

    fn add(&mut self, read: Read) {
        for (key, now) in read {
            // What appears later was mounted since.
            let before = if self.has_begun { now.map(|count| count.map(|_| 0)) } else { now };
            let [last, total] =
                self.known.entry(key).or_insert([before, now.map(|count| count.map(|_| 0))]);
            for at in 0..now.len() {
                let grown = match (now[at], last[at]) {
                    // One that is smaller began anew: it was unmounted meanwhile.
                    (Some(now), Some(last)) => now.checked_sub(last).unwrap_or(now),
                    (now, _) => now.unwrap_or(0),
                };
                if now[at].is_some() {
                    total[at] = Some(total[at].unwrap_or(0).saturating_add(grown));
                }
            }
            *last = now;
        }
        self.has_begun = true;
    }

    /// What came since the first reading, of each kind of which anything did.
    pub fn groups(&self) -> impl Iterator<Item = Group> + '_ {
        let any = |total: &Counts| total.iter().any(|count| count.is_some_and(|count| count > 0));
        let known = self.known.iter().filter(move |(_, [_, total])| any(total));
        known.map(|(key, [_, total])| {
            let mut group = Group::unknown(&NODE_MOUNT, key.to_vec());
            for (field, count) in super::FIELDS.iter().zip(total) {
                group.set(*field, *count);
            }
            group
        })
    }

    /// What is not in these numbers.
    pub fn note(&self) -> Option<String> {
        (self.strange_lines > 0).then(|| {
            format!(
                "{} lines of the counts of NFS and Lustre have a form that is not known: they are left out",
                self.strange_lines
            )
        })
    }
}

/// The names and texts of Lustre's counts below `folder`; none where there is none.
fn read_llite(folder: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_FOLDERS);
    let read = entries.filter_map(|entry| {
        let text = fs::read_to_string(entry.path().join("stats")).ok()?;
        Some((entry.file_name().to_string_lossy().into_owned(), text))
    });
    read.collect()
}

/// The counts in mountstats `counts` and in Lustre's `folders`, by the mounts of `mountinfo`; and how many lines have a
/// form that is not known.
fn of_texts(
    counts: &str,
    folders: Vec<(String, String)>,
    mountinfo: &str,
    names: &mut Mounts,
) -> (Read, usize) {
    let mounts: Vec<_> = mountinfo::mounts(mountinfo).collect();
    let (mut read, mut seen, mut strange_lines) = (Read::new(), BTreeSet::new(), 0);
    for mount in mountstats::parse(counts) {
        strange_lines += mount.strange_lines;
        // What was mounted last at a place hides the others.
        let shown = mounts.iter().rev().find(|known| known.point == mount.point);
        let Some(device) = shown.map(|known| known.device) else { continue };
        // Several mounts of one file system show the same counts.
        if seen.insert(device) {
            let path = names.get(device, 0).path;
            mount.ops.into_iter().for_each(|(op, counts)| add(&mut read, "nfs", &path, op, counts));
        }
    }
    let mut known = BTreeSet::new();
    for (folder, text) in folders {
        if !known.insert(folder.clone()) {
            continue;
        }
        let system = folder.rsplit_once('-').map_or(&*folder, |(system, _)| system);
        let own: BTreeSet<_> = mounts
            .iter()
            .filter(|mount| mount.fs == "lustre" && llite::is_of(&mount.source, system))
            .map(|mount| mount.device)
            .collect();
        let path = match own.first() {
            Some(device) if own.len() == 1 => names.get(*device, 0).path,
            _ => String::new(),
        };
        let (ops, strange) = llite::parse(&text);
        strange_lines += strange;
        ops.into_iter().for_each(|(op, counts)| add(&mut read, "lustre", &path, op, counts));
    }
    (read, strange_lines)
}

/// Adds to what is known of a kind of request: of mounts that cannot be told apart together.
fn add(read: &mut Read, fs: &str, path: &str, op: String, counts: Counts) {
    let path = tag::clean(path, tag::MAX_TAG_BYTES).unwrap_or_default().into_owned();
    let Some(op) = tag::clean(&op, tag::MAX_TAG_BYTES).map(|op| op.into_owned()) else { return };
    let known = read.entry([fs.to_owned(), path, op]).or_insert([None; super::FIELDS.len()]);
    for (known, count) in known.iter_mut().zip(counts) {
        *known = match (*known, count) {
            (Some(sum), Some(count)) => Some(sum.saturating_add(count)),
            (known, count) => known.or(count),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tables::NodeMount;

    const MOUNTINFO: &str = "\
        50 22 0:51 / /home rw - nfs4 fs1:/home rw,vers=4.2\n\
        51 22 0:51 /me /srv/me rw - nfs4 fs1:/home/me rw,vers=4.2\n\
        52 22 0:60 / /scratch rw - lustre 10.0.0.1@tcp:10.0.0.2@tcp:/scratch rw\n";

    fn read_of(bytes: u64) -> Read {
        let nfs = |point: &str| {
            format!(
                "device fs1:/home mounted on {point} with fstype nfs4 statvers=1.1\n\
                 \tper-op statistics\n\tREAD: 4 5 0 800 {bytes} 1 20 22 0\n"
            )
        };
        let counts = format!(
            "device proc mounted on /proc with fstype proc\n{}{}",
            nfs("/home"),
            nfs("/srv/me")
        );
        let text = "snapshot_time 1.5 secs.nsecs\nread_bytes 2 samples [bytes] 1 9 10\nopen 3 samples [usecs] 1 5 9 35\n";
        let folders = vec![("scratch-ffff9bc0".to_owned(), text.to_owned())];
        let (read, strange) = of_texts(&counts, folders, MOUNTINFO, &mut Mounts::of(MOUNTINFO));
        assert_eq!(strange, 0);
        read
    }

    #[test]
    fn each_file_system_counts_once_and_from_the_first_reading_on() {
        let mut servers = Servers::default();
        servers.add(read_of(1_000));
        assert_eq!(servers.groups().count(), 0, "what was before is not told");
        servers.add(read_of(1_700));
        let groups: Vec<_> = servers.groups().collect();
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].tags, ["nfs", "/home", "read"]);
        assert_eq!(groups[0].number(NodeMount::received_bytes), Some(700));
        assert_eq!(groups[0].number(NodeMount::ops), Some(0));
        // Mounted anew: all that it counts came since.
        servers.add(read_of(300));
        let groups: Vec<_> = servers.groups().collect();
        assert_eq!(groups[0].number(NodeMount::received_bytes), Some(1_000));
    }

    #[test]
    fn a_mount_that_comes_later_counts_from_its_begin() {
        let mut servers = Servers::default();
        servers.add(Read::new());
        servers.add(read_of(1_000));
        let groups: Vec<_> = servers.groups().collect();
        let of = |mount: &str, op: &str| {
            groups.iter().find(|group| group.tags[1..] == [mount, op]).unwrap()
        };
        assert_eq!(groups.len(), 3);
        assert_eq!(of("/home", "read").number(NodeMount::retransmits), Some(1));
        assert_eq!(of("/scratch", "read").number(NodeMount::received_bytes), Some(10));
        assert_eq!(of("/scratch", "open").number(NodeMount::time_ns), Some(9_000));
        assert_eq!(of("/scratch", "open").number(NodeMount::round_trip_ns), None);
    }

    /// Trees of `tests/data/lustre`, in the shape of what clients of real systems print.
    fn lustre(version: &str, source: &str) -> (BTreeMap<String, Counts>, usize) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data/lustre")
            .join(version)
            .join("llite");
        let mountinfo = format!("52 22 0:60 / /lustre rw - lustre {source} rw,flock,lazystatfs\n");
        let folders = read_llite(&folder);
        assert_eq!(folders.len(), 1, "{}", folder.display());
        let (read, strange) = of_texts("", folders, &mountinfo, &mut Mounts::of(&mountinfo));
        let by_kind = read.into_iter().map(|([fs, mount, op], counts)| {
            assert_eq!((&*fs, &*mount), ("lustre", "/lustre"), "{op}");
            (op, counts)
        });
        (by_kind.collect(), strange)
    }

    #[test]
    fn what_clients_of_each_version_print_is_read() {
        const MS: u64 = 1_000_000;
        // The version, its mount's source, kinds of requests, and of reads: their number, bytes and time.
        let all = [
            ("2.5", "10.1.0.2@o2ib:/scratch", 16, [Some(6_400), Some(2_684_354_560), None]),
            ("2.10", "10.1.0.2@o2ib:/home", 4, [Some(24), Some(2_651_109), None]),
            ("2.12", "mgs@tcp:/home/users", 12, [Some(24_171_493), Some(9_265_110_931_821), None]),
            (
                "2.14",
                "10.1.0.2@o2ib:10.1.0.3@o2ib:/deep-work",
                10,
                [Some(8_192), Some(4_294_967_296), Some(901 * MS + 120_000)],
            ),
            ("2.15", "10.1.0.2@o2ib:/scratch", 20, [Some(4_096), Some(8 << 30), Some(2_048 * MS)]),
            ("2.17", "mgs@o2ib:/proj", 6, [Some(10), Some(5_242_880), Some(8_120_000)]),
        ];
        for (version, source, kinds, expected) in all {
            let (read, strange) = lustre(version, source);
            assert_eq!((read.len(), strange), (kinds, 0), "{version}: {:?}", read.keys());
            let [ops, _, _, _, _, received, _, _, time] = read["read"];
            assert_eq!([ops, received, time], expected, "{version}");
        }
    }

    #[test]
    fn what_went_to_servers_is_told_apart_where_it_is_and_no_gap_between_opens_is_a_time() {
        let (old, _) = lustre("2.5", "10.1.0.2@o2ib:/scratch");
        assert_eq!(old["osc_read"][5], Some(1 << 30));
        assert_eq!(old["osc_write"][4], Some(512 << 20));
        let (new, _) = lustre("2.14", "10.1.0.2@o2ib:/deep-work");
        assert!(new.keys().all(|kind| !kind.starts_with("openc")), "{:?}", new.keys());
        assert_eq!(new["open"][8], Some(10_270_777_000));
        assert_eq!(new["write"][4], Some(8 << 20));
    }
}
