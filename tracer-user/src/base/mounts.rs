//! File systems by the kernel's number of them: what kind each is and where it is mounted.

use std::{
    collections::HashMap,
    fs,
    time::{Duration, Instant},
};

/// Every mount that this process sees.
const MOUNTS: &str = "/proc/self/mountinfo";
/// How long a number that is mounted nowhere is not looked for again.
const PATIENCE: Duration = Duration::from_secs(10);

/// A file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// Its type, `ext4`; `unknown` where neither its number nor its magic number tells.
    pub fs: String,
    /// Where it was mounted first; empty where it is not mounted here: in a container's own space, or of
    /// the kernel itself.
    pub path: String,
}

/// The file systems seen so far, by number (`major << 20 | minor`).
#[derive(Debug, Default)]
pub struct Mounts {
    known: HashMap<u32, Mount>,
    read_at: Option<Instant>,
}

impl Mounts {
    /// The file system of that number; 0 is none. `magic` is its magic number.
    pub fn get(&mut self, device: u32, magic: u64) -> Mount {
        if device != 0 && !self.known.contains_key(&device) {
            let is_stale = self.read_at.is_none_or(|at| at.elapsed() > PATIENCE);
            if is_stale {
                self.read_at = Some(Instant::now());
                // What was unmounted keeps its name: it is still what was waited for.
                self.known.extend(parse(&fs::read_to_string(MOUNTS).unwrap_or_default()));
            }
        }
        match self.known.get(&device).filter(|_| device != 0) {
            Some(mount) => mount.clone(),
            None => Mount { fs: name_of(magic).into(), path: String::new() },
        }
    }
}

/// The mounts of `mountinfo`, by number. Of several of one file system the first that shows its root.
fn parse(mountinfo: &str) -> HashMap<u32, Mount> {
    let mut all = HashMap::<u32, (bool, Mount)>::new();
    for line in mountinfo.lines() {
        let Some((number, is_root, mount)) = parse_line(line) else { continue };
        let entry = all.entry(number).or_insert_with(|| (is_root, mount.clone()));
        if is_root && !entry.0 {
            *entry = (is_root, mount);
        }
    }
    all.into_iter().map(|(number, (_, mount))| (number, mount)).collect()
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn parse_line(line: &str) -> Option<(u32, bool, Mount)> {
    let (before, after) = line.split_once(" - ")?;
    let mut words = before.split(' ').skip(2);
    let (major, minor) = words.next()?.split_once(':')?;
    let number = major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?;
    let (root, path) = (words.next()?, words.next()?);
    let fs = plain_type(after.split(' ').next()?);
    Some((number, root == "/", Mount { fs: fs.into(), path: unescape(path) }))
}

/// The type without its version or the program behind it: `nfs4` is nfs, `fuse.sshfs` and `fuseblk` are fuse.
fn plain_type(name: &str) -> &str {
    match name {
        "nfs4" => "nfs",
        "fuseblk" => "fuse",
        _ => name.split('.').next().unwrap_or(name),
    }
}

/// Blanks and the like are written as `\040` there.
fn unescape(path: &str) -> String {
    let mut plain = Vec::new();
    let mut bytes = path.as_bytes();
    while let [first, rest @ ..] = bytes {
        let octal = rest.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = octal.filter(|_| *first == b'\\').and_then(|it| u8::from_str_radix(it, 8).ok());
        plain.push(byte.unwrap_or(*first));
        bytes = if byte.is_some() { &rest[3..] } else { rest };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// The type of a file system that is mounted nowhere here, by its magic number (the kernel's
/// `include/uapi/linux/magic.h`; Lustre's, GPFS's and BeeGFS's own sources).
fn name_of(magic: u64) -> &'static str {
    match magic {
        0xef53 => "ext4",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        0x0102_1994 => "tmpfs",
        0x6969 => "nfs",
        0x6573_5546 => "fuse",
        0x0bd0_0bd0 => "lustre",
        0x4750_4653 => "gpfs",
        0x1983_0326 => "beegfs",
        0x00c3_6400 => "ceph",
        0x794c_7630 => "overlay",
        0xff53_4d42 => "cifs",
        0xfe53_4d42 => "smb2",
        0x2fc1_2fc1 => "zfs",
        0xf2f5_2010 => "f2fs",
        0x7371_7368 => "squashfs",
        0xe0f5_e1e2 => "erofs",
        0x0102_1997 => "9p",
        0x9fa0 => "proc",
        0x6265_6572 => "sysfs",
        0x5346_414f => "afs",
        0x6264_6576 => "bdev",
        0x5049_5045 => "pipefs",
        0x534f_434b => "sockfs",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_known_by_their_numbers() {
        let all = parse(
            "22 1 254:0 / / rw - ext4 /dev/vda rw\n\
             23 22 254:0 /home /srv/my\\040home rw - ext4 /dev/vda rw\n\
             30 22 0:44 /export /data rw - nfs4 server:/export rw\n\
             31 22 0:45 / /mnt/a\\134b rw master:1 - fuse.sshfs host: rw\n\
             damaged\n32 22 x:y / / rw - ext4 a rw\n",
        );
        let mount = |fs: &str, path: &str| Mount { fs: fs.into(), path: path.into() };
        assert_eq!(all[&(254 << 20)], mount("ext4", "/"));
        assert_eq!(all[&44], mount("nfs", "/data"));
        assert_eq!(all[&45], mount("fuse", "/mnt/a\\b"));
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn what_is_mounted_nowhere_is_known_by_its_magic_number() {
        let mut mounts = Mounts::default();
        let nowhere = mounts.get(u32::MAX, 0x0bd0_0bd0);
        assert_eq!(nowhere, Mount { fs: "lustre".into(), path: String::new() });
        assert_eq!(mounts.get(0, 0).fs, "unknown");
    }
}
