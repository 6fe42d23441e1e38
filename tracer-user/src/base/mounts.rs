//! File systems by the kernel's number of them: what kind each is and where it is mounted.

use std::{
    collections::HashMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

mod overlay;

/// Every mount that this process sees.
const MOUNTS: &str = "/proc/self/mountinfo";
/// How long a number is taken for what it was: those of file systems without a device are used again.
const FRESH: Duration = Duration::from_secs(10);
/// How long a number that is mounted nowhere is not looked for again.
const PATIENCE: Duration = Duration::from_millis(100);

/// A file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// Its type, `ext4`; of an overlay that of its layers, where they are all of one; `unknown` where
    /// neither its number nor its magic number tells.
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
        let patience = if self.known.contains_key(&device) { FRESH } else { PATIENCE };
        if device != 0 && self.read_at.is_none_or(|at| at.elapsed() > patience) {
            self.read_at = Some(Instant::now());
            // What was unmounted keeps its name: it is still what was waited for.
            self.known.extend(parse(&fs::read_to_string(MOUNTS).unwrap_or_default()));
        }
        match self.known.get(&device).filter(|_| device != 0) {
            Some(mount) => mount.clone(),
            None => Mount { fs: name_of(magic).into(), path: String::new() },
        }
    }
}

/// A line of mountinfo.
struct Line<'a> {
    number: u32,
    /// Whether the root of the file system is there, not a part of it.
    is_root: bool,
    mount: Mount,
    /// The file system's own options.
    options: &'a str,
}

/// The mounts of `mountinfo`, by number. Of several of one file system the first that shows its root.
fn parse(mountinfo: &str) -> HashMap<u32, Mount> {
    let lines: Vec<_> = mountinfo.lines().filter_map(Line::parse).collect();
    let mut all = HashMap::<u32, &Line<'_>>::new();
    for line in &lines {
        let entry = all.entry(line.number).or_insert(line);
        if line.is_root && !entry.is_root {
            *entry = line;
        }
    }
    let mount = |line: &Line<'_>| {
        let Mount { fs, path } = line.mount.clone();
        let below = if fs == overlay::TYPE { line.below(&lines) } else { None };
        Mount { fs: below.map_or(fs, str::to_owned), path }
    };
    all.into_iter().map(|(number, line)| (number, mount(line))).collect()
}

impl<'a> Line<'a> {
    /// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
    fn parse(line: &'a str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut words = before.split(' ').skip(2);
        let (major, minor) = words.next()?.split_once(':')?;
        let number = major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?;
        let (root, path) = (words.next()?, words.next()?);
        let mut words = after.split(' ');
        let fs = plain_type(words.next()?);
        let mount = Mount { fs: fs.into(), path: unescape(path) };
        Some(Self {
            number,
            is_root: root == "/",
            mount,
            options: words.nth(1).unwrap_or_default(),
        })
    }

    /// The type of the file systems that hold all layers of this overlay; `None` where they differ or
    /// cannot be told.
    fn below<'l>(&self, lines: &'l [Line<'_>]) -> Option<&'l str> {
        let mut types = overlay::layers(self.options).into_iter().map(|layer| {
            // What was mounted last hides what was there before.
            let holders =
                lines.iter().filter(|line| Path::new(&layer).starts_with(&line.mount.path));
            let holder = holders.max_by_key(|line| line.mount.path.len())?;
            Some(holder.mount.fs.as_str())
        });
        let first = types.next()??;
        types.all(|fs| fs == Some(first)).then_some(first)
    }
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
             40 22 0:60 / /c/one rw - overlay overlay rw,lowerdir=/data/a:/data/b,upperdir=/data/c,workdir=/data/w\n\
             41 22 0:61 / /c/two rw - overlay overlay rw,lowerdir=/data/a,upperdir=/c\n\
             damaged\n32 22 x:y / / rw - ext4 a rw\n",
        );
        let mount = |fs: &str, path: &str| Mount { fs: fs.into(), path: path.into() };
        assert_eq!(all[&(254 << 20)], mount("ext4", "/"));
        assert_eq!(all[&44], mount("nfs", "/data"));
        assert_eq!(all[&45], mount("fuse", "/mnt/a\\b"));
        assert_eq!(all[&60], mount("nfs", "/c/one"));
        assert_eq!(all[&61], mount("overlay", "/c/two"));
        assert_eq!(all.len(), 5);
    }

    #[test]
    fn what_is_mounted_nowhere_is_known_by_its_magic_number() {
        let mut mounts = Mounts::default();
        let nowhere = mounts.get(u32::MAX, 0x0bd0_0bd0);
        assert_eq!(nowhere, Mount { fs: "lustre".into(), path: String::new() });
        assert_eq!(mounts.get(0, 0).fs, "unknown");
    }
}
