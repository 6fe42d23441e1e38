//! File systems by the kernel's number of them: what kind each is and where it is mounted.

use std::{
    collections::HashMap,
    path::Path,
    time::{Duration, Instant},
};

use super::mountinfo;

mod overlay;

/// For how long the mounts are taken to stay as they were read.
const FRESH: Duration = Duration::from_secs(1);
/// How long a number that is mounted nowhere is not looked for again.
const PATIENCE: Duration = Duration::from_millis(100);

/// A file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// Its type, `ext4`; of an overlay that of its layers, where they are all of one; `unknown` where
    /// neither its number nor its magic number tells.
    pub fs: String,
    /// Where it was mounted first; empty where it is not mounted here: in a container's own space, no
    /// longer, or of the kernel itself.
    pub path: String,
    /// Which of its directories is mounted there.
    pub root: String,
}

impl Mount {
    /// The path of what the file system itself calls `inner`; that where it is not below where it is mounted.
    pub fn full(&self, inner: &str) -> String {
        let root = self.root.trim_end_matches('/');
        let rest = inner.strip_prefix(root).filter(|_| inner.starts_with('/'));
        let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let Some(rest) = rest.filter(|_| !self.path.is_empty()) else { return inner.to_owned() };
        match (self.path.trim_end_matches('/'), rest.trim_end_matches('/')) {
            ("", "") => "/".to_owned(),
            (point, rest) => format!("{point}{rest}"),
        }
    }
}

/// The mounted file systems, by number (`major << 20 | minor`).
#[derive(Debug, Default)]
pub struct Mounts {
    mounted: HashMap<u32, Mount>,
    read_at: Option<Instant>,
    /// Whether they are those of [`Mounts::take`] alone; else this process's, read where that is needed.
    is_told: bool,
}

impl Mounts {
    /// Those that will be told, of whichever process.
    pub fn told() -> Self {
        Self { is_told: true, ..Self::default() }
    }

    /// Those of `mountinfo`, as just read.
    #[cfg(test)]
    pub fn of(mountinfo: &str) -> Self {
        let mut mounts = Self { read_at: Some(Instant::now()), ..Self::default() };
        mounts.take(mountinfo);
        mounts
    }

    /// The file system of that number; 0 is none. `magic` is its magic number.
    pub fn get(&mut self, device: u32, magic: u64) -> Mount {
        let patience = if self.mounted.contains_key(&device) { FRESH } else { PATIENCE };
        let is_due = || self.read_at.is_none_or(|at| at.elapsed() > patience);
        if device != 0 && !self.is_told && is_due() {
            self.read_at = Some(Instant::now());
            self.take(&mountinfo::read().unwrap_or_default());
        }
        match self.mounted.get(&device).filter(|_| device != 0) {
            Some(mount) => mount.clone(),
            None => Mount { fs: name_of(magic).into(), ..Mount::default() },
        }
    }

    /// Where `path` is, by the longest mount point that it begins with; unknown of one that begins nowhere.
    pub fn of_path(&self, path: &str) -> Mount {
        let holds =
            |mount: &&Mount| !mount.path.is_empty() && Path::new(path).starts_with(&mount.path);
        let longest = self.mounted.values().filter(holds).max_by_key(|mount| mount.path.len());
        longest.cloned().unwrap_or_else(|| Mount { fs: name_of(0).into(), ..Mount::default() })
    }

    /// Takes the mounts of `text`; of several of one file system the first that shows its root. What is not
    /// there any more is forgotten: the kernel gives its number to the next.
    pub fn take(&mut self, text: &str) {
        let mounts: Vec<_> = mountinfo::mounts(text).collect();
        let mut all = HashMap::<u32, &mountinfo::Mount<'_>>::new();
        for mount in &mounts {
            let known = all.entry(mount.device).or_insert(mount);
            if known.root != "/" && mount.root == "/" {
                *known = mount;
            }
        }
        // What was mounted last hides what was there before.
        let types = mounts.iter().map(|mount| (Path::new(&mount.point), mount.fs)).collect();
        let mounted = all.into_iter().map(|(device, mount)| {
            let fs = below(mount, &types).unwrap_or(mount.fs);
            let (path, root) = (mount.point.clone(), mount.root.clone());
            (device, Mount { fs: plain_type(fs).into(), path, root })
        });
        self.mounted = mounted.collect();
    }
}

/// The type of the file systems that hold all layers of `overlay`, by the `types` of mount points; `None` where they
/// differ or cannot be told, or it is no overlay.
fn below<'a>(overlay: &mountinfo::Mount<'_>, types: &HashMap<&Path, &'a str>) -> Option<&'a str> {
    let layers =
        if overlay.fs == overlay::TYPE { overlay::layers(overlay.fs_options) } else { vec![] };
    let mut holders =
        layers.iter().map(|layer| Path::new(layer).ancestors().find_map(|path| types.get(path)));
    let first = holders.next()??;
    holders.all(|fs| fs == Some(first)).then_some(*first)
}

/// The type without its version or the program behind it: `nfs4` is nfs, `fuse.sshfs` and `fuseblk` are fuse.
fn plain_type(name: &str) -> &str {
    match name {
        "nfs4" => "nfs",
        "fuseblk" => "fuse",
        _ => name.split('.').next().unwrap_or(name),
    }
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
        0x0904_1934 => "anon_inode",
        0x1cd1 => "devpts",
        0x6367_7270 => "cgroup2",
        0x1980_0202 => "mqueue",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file system of that number, without a look at what is mounted now.
    fn known(mounts: &mut Mounts, device: u32) -> (String, String) {
        mounts.read_at = Some(Instant::now());
        let Mount { fs, path, .. } = mounts.get(device, 0);
        (fs, path)
    }

    #[test]
    fn mounts_are_known_by_their_numbers_until_these_are_used_again() {
        let mut mounts = Mounts::default();
        mounts.take(
            "23 22 254:0 /home /srv/home rw - ext4 /dev/vda rw\n\
             22 1 254:0 / / rw - ext4 /dev/vda rw\n\
             30 22 0:44 /export /data rw - nfs4 server:/export rw\n\
             31 22 0:45 / /mnt/a rw master:1 - fuse.sshfs host: rw\n\
             40 22 0:60 / /c/one rw - overlay overlay rw,lowerdir=/data/a:/data/b,upperdir=/data/c\n\
             41 22 0:61 / /c/two rw - overlay overlay rw,lowerdir=/data/a,upperdir=/c\n",
        );
        let of = |fs: &str, path: &str| (fs.to_owned(), path.to_owned());
        assert_eq!(known(&mut mounts, 254 << 20), of("ext4", "/"));
        assert_eq!(known(&mut mounts, 44), of("nfs", "/data"));
        assert_eq!(known(&mut mounts, 45), of("fuse", "/mnt/a"));
        assert_eq!(known(&mut mounts, 60), of("nfs", "/c/one"));
        assert_eq!(known(&mut mounts, 61), of("overlay", "/c/two"));
        mounts.take("32 22 0:44 / /run/user/7 rw - tmpfs tmpfs rw\n");
        assert_eq!(known(&mut mounts, 44), of("tmpfs", "/run/user/7"));
        assert_eq!(known(&mut mounts, 45), of("unknown", ""));
    }

    #[test]
    fn those_that_are_told_are_not_looked_for_here() {
        let own = mountinfo::read().unwrap();
        let root = mountinfo::mounts(&own).find(|mount| mount.point == "/").unwrap().device;
        let mut told = Mounts::told();
        assert_eq!(told.get(root, 0).path, "");
        told.take("30 22 0:44 / /data rw - tmpfs a rw\n");
        assert_eq!((told.get(44, 0).path, told.get(root, 0).path), ("/data".into(), String::new()));
    }

    #[test]
    fn what_a_file_system_calls_its_own_is_joined_with_where_it_is_mounted() {
        let mount = |path: &str, root: &str| Mount {
            path: path.into(),
            root: root.into(),
            fs: String::new(),
        };
        for (path, root, inner, full) in [
            ("/", "/", "/etc/a", "/etc/a"),
            ("/", "/", "/", "/"),
            ("/mnt", "/", "/a", "/mnt/a"),
            ("/mnt", "/", "/", "/mnt"),
            ("/home", "/srv/home", "/srv/home/ada/x", "/home/ada/x"),
            ("/home", "/srv/home", "/srv/home", "/home"),
            ("/home", "/srv/home", "/srv/homes/x", "/srv/homes/x"),
            ("", "", "/a", "/a"),
            ("/mnt", "/", "memfd:a", "memfd:a"),
            ("/mnt", "/", "…/a/b", "…/a/b"),
        ] {
            assert_eq!(mount(path, root).full(inner), full, "{inner} below {root} on {path}");
        }
    }

    #[test]
    fn what_is_mounted_nowhere_is_known_by_its_magic_number() {
        let mut mounts = Mounts::default();
        let nowhere = mounts.get(u32::MAX, 0x0bd0_0bd0);
        assert_eq!(nowhere, Mount { fs: "lustre".into(), ..Mount::default() });
        assert_eq!(mounts.get(0, 0).fs, "unknown");
    }
}
