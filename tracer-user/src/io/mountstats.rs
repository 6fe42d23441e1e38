//! The text of /proc/PID/mountstats: what the client of NFS counts of each mount, by the procedure of the protocol.

use super::servers::Counts;
use crate::base::mountinfo::unescape;

/// Nanoseconds of the unit of its times.
const MS: u64 = 1_000_000;

/// A mount of NFS.
#[derive(Debug, PartialEq, Eq)]
pub struct Mount {
    /// Where it is mounted.
    pub point: String,
    /// What was counted of each procedure since it was mounted, by its name in small letters.
    pub ops: Vec<(String, Counts)>,
    /// Lines among those of procedures that have another form.
    pub strange_lines: usize,
}

/// The mounts of NFS in `text`.
pub fn parse(text: &str) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = Vec::new();
    // Whether the lines are those of a mount of NFS, and whether of its procedures.
    let (mut is_nfs, mut is_by_op) = (false, false);
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if line.starts_with("device ") || line.starts_with("no device ") {
            let mount = point_of_nfs(&words);
            (is_nfs, is_by_op) = (mount.is_some(), false);
            mounts.extend(mount.map(|point| Mount { point, ops: Vec::new(), strange_lines: 0 }));
        } else if words == ["per-op", "statistics"] {
            is_by_op = true;
        } else if is_nfs && is_by_op && !words.is_empty() {
            let Some(mount) = mounts.last_mut() else { continue };
            match op(&words) {
                Some(op) => mount.ops.push(op),
                None => mount.strange_lines += 1,
            }
        }
    }
    mounts
}

/// Where it is mounted, by `device fs1:/home mounted on /home with fstype nfs4 statvers=1.1`.
fn point_of_nfs(words: &[&str]) -> Option<String> {
    let on = words.windows(2).position(|pair| pair == ["mounted", "on"])?;
    let fs = words.iter().position(|word| *word == "fstype").and_then(|at| words.get(at + 1))?;
    ["nfs", "nfs4"].contains(fs).then(|| words.get(on + 2).map(|point| unescape(point)))?
}

/// `READ: 4 5 0 800 1700 1 20 22 0`: requests, transmissions, timeouts, bytes sent and received, milliseconds queued,
/// until the answer and in all; errors where the kernel counts them.
fn op(words: &[&str]) -> Option<(String, Counts)> {
    let name = words.first()?.strip_suffix(':')?;
    let numbers: Option<Vec<u64>> = words[1..].iter().map(|word| word.parse().ok()).collect();
    let numbers = numbers?;
    let [ops, sent, timeouts, sent_bytes, received_bytes, queue, round_trip, time, ..] =
        numbers[..]
    else {
        return None;
    };
    let ns = |ms: u64| Some(ms.saturating_mul(MS));
    let counts = [
        Some(ops),
        numbers.get(8).copied(),
        Some(sent.saturating_sub(ops)),
        Some(timeouts),
        Some(sent_bytes),
        Some(received_bytes),
        ns(queue),
        ns(round_trip),
        ns(time),
    ];
    Some((name.to_ascii_lowercase(), counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the shapes of Linux 3.10 (version 1.0, eight numbers) and 6.1 (1.1, nine).
    const TEXT: &str = "\
device rootfs mounted on / with fstype rootfs
device proc mounted on /proc with fstype proc
device fs1:/export/home mounted on /mnt/my\\040data with fstype nfs statvers=1.1
\topts:\trw,vers=3,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys
\tage:\t86413
\tcaps:\tcaps=0x3fc7,wtmult=512,dtsize=8192,bsize=0,namlen=255
\tsec:\tflavor=1,pseudoflavor=1
\tevents:\t14 902 3 40 11 8 1210 16384 0 6 0 3 9 0 7 0 0 2 0 4 0 0 0 0 0 0 0
\tbytes:\t67108864 1048576 0 0 67108864 1048576 16384 256
\tRPC iostats version: 1.0  p/v: 100003/3 (nfs)
\txprt:\ttcp 871 1 2 0 36 1004 1004 0 1011 0 2 5 3
\tper-op statistics
\t        NULL: 0 0 0 0 0 0 0 0
\t        READ: 64 66 1 8704 67117056 12 812 830
\t       WRITE: 1 1 0 1048704 136 0 9 9

device none mounted on /dev/shm with fstype tmpfs
no device mounted on /run/x with fstype autofs
device fs2:/ mounted on /srv with fstype nfs4 statvers=1.1
\tnfsv4:\tbm0=0xfdffbfff,bm1=0xf9be3e,bm2=0x60800,acl=0x3,sessions,pnfs=not configured
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 0 0 1 0 24 512 512 0 520 0 2 0 0
\tper-op statistics
\t        READ: 3 3 0 600 12588 0 4 4 2
\t    SEQUENCE: what is this
\t     GETATTR: 1 2
";

    #[test]
    fn the_mounts_of_nfs_are_read_and_what_is_strange_is_counted() {
        let mounts = parse(TEXT);
        let points: Vec<_> = mounts.iter().map(|mount| &*mount.point).collect();
        assert_eq!(points, ["/mnt/my data", "/srv"]);
        let lines: Vec<_> = mounts.iter().map(|mount| mount.strange_lines).collect();
        assert_eq!(lines, [0, 2]);
        let names: Vec<_> = mounts[0].ops.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["null", "read", "write"]);
        let counts = [64, 2, 1, 8704, 67_117_056, 12 * MS, 812 * MS, 830 * MS].map(Some);
        let [ops, rest @ ..] = counts;
        assert_eq!(mounts[0].ops[1].1[..2], [ops, None], "errors are not counted there");
        assert_eq!(mounts[0].ops[1].1[2..], rest);
        assert_eq!(mounts[1].ops[0].1[1], Some(2), "errors");
    }

    #[test]
    fn garbage_is_no_mount() {
        for text in [
            "",
            "device\n",
            "device a mounted on\n",
            "device x mounted on /y with fstype\n",
            "per-op statistics\n READ: 1\n",
        ] {
            assert!(parse(text).is_empty(), "{text}");
        }
        let huge = "device a mounted on /a with fstype nfs\nper-op statistics\nREAD: 1 0 0 0 0 0 0 18446744073709551615 99999999999999999999\n";
        assert_eq!(parse(huge)[0].strange_lines, 1, "numbers that are none");
    }
}
