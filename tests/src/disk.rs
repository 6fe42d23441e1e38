//! A block device of a test's own: a loop device over memory, so that nobody else's requests are on it
//! and its time is not a virtual disk's; it vanishes with its last user, killed or not. And the name of
//! the disk below a file.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::{AsRawFd, FromRawFd},
        unix::fs::{FileExt, MetadataExt},
    },
    path::Path,
};

const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4c82;
const LOOP_CONFIGURE: libc::Ioctl = 0x4c0a;
/// Detach when the last user closes it.
const LO_FLAGS_AUTOCLEAR: u32 = 4;
/// `struct loop_config` of linux/loop.h, in words, and where `info.lo_flags` lies in it, in bytes.
const CONFIG_WORDS: usize = 38;
const CONFIG_FLAGS: usize = 60;
/// Others make loop devices too: the one found free may be taken meanwhile.
const ATTEMPTS: u32 = 50;

/// The device.
#[derive(Debug)]
pub struct RamDisk {
    memory: File,
    /// Keeps it in being.
    _device: File,
    number: i32,
}

impl RamDisk {
    /// A device of `bytes` bytes, none of them a hole.
    pub fn new(bytes: u64) -> Self {
        // SAFETY: a literal with its zero.
        let fd = unsafe {
            libc::memfd_create(
                c"jobtrace-test".as_ptr(),
                libc::MFD_ALLOW_SEALING | libc::MFD_CLOEXEC,
            )
        };
        assert!(fd >= 0, "memfd_create: {}", io::Error::last_os_error());
        // SAFETY: just opened, owned by nobody else.
        let memory = unsafe { File::from_raw_fd(fd) };
        let piece = vec![0x5a; 1 << 20];
        for at in (0..bytes).step_by(piece.len()) {
            memory.write_all_at(&piece[..piece.len().min((bytes - at) as usize)], at).unwrap();
        }
        for _ in 0..ATTEMPTS {
            match attach(&memory) {
                Ok((device, number)) => return Self { memory, _device: device, number },
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
                Err(error) => {
                    panic!("no loop device: {error}; root and the module loop are needed")
                }
            }
        }
        panic!("{ATTEMPTS} loop devices were taken by others")
    }

    /// Its name, the tag `device`.
    pub fn name(&self) -> String {
        format!("loop{}", self.number)
    }

    /// Its file.
    pub fn path(&self) -> String {
        format!("/dev/{}", self.name())
    }

    /// Its number as blkio writes it.
    pub fn major_minor(&self) -> String {
        let path = format!("/sys/block/{}/dev", self.name());
        fs::read_to_string(path).unwrap().trim().to_owned()
    }

    /// Takes the memory past `bytes` away: reads and writes there end in EIO from now on.
    pub fn fail_from(&self, bytes: u64) {
        self.memory.set_len(bytes).unwrap();
        // SAFETY: an open file; without growth a write past its end is refused.
        let sealed =
            unsafe { libc::fcntl(self.memory.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_GROW) };
        assert_eq!(sealed, 0, "F_ADD_SEALS: {}", io::Error::last_os_error());
    }
}

fn attach(memory: &File) -> io::Result<(File, i32)> {
    let open = |path: &str| File::options().read(true).write(true).open(path);
    let control = open("/dev/loop-control")?;
    // SAFETY: takes no argument.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    let device = open(&format!("/dev/loop{number}"))?;
    let mut config = [0_u64; CONFIG_WORDS];
    config[0] = memory.as_raw_fd() as u64;
    config[CONFIG_FLAGS / 8] = u64::from(LO_FLAGS_AUTOCLEAR) << (CONFIG_FLAGS % 8 * 8);
    // SAFETY: the kernel reads a struct of this size.
    match unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, config.as_ptr()) } {
        0 => Ok((device, number)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Name of the whole disk that holds `path`; panics where it is on none.
pub fn device_below(path: &Path) -> String {
    let number = fs::metadata(path).unwrap().dev();
    let link = format!("/sys/dev/block/{}:{}", libc::major(number), libc::minor(number));
    let whole = fs::canonicalize(&link).unwrap_or_else(|_| {
        panic!("{} is on no block device: set CARGO_TARGET_DIR", path.display())
    });
    // A partition's directory lies in its disk's.
    let whole = if whole.join("partition").exists() { whole.parent().unwrap() } else { &whole };
    whole.file_name().unwrap().to_string_lossy().into_owned()
}
