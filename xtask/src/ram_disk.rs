//! A block device of one's own: a loop device over memory, so that nobody else's requests are on it and its time
//! is not a virtual disk's, too noisy to tell slowdowns below 10 % apart. It vanishes with its last user, killed
//! or not.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;

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
    ///
    /// # Errors
    /// When there is no memory, or no loop device: root and the module `loop` are needed.
    pub fn create(bytes: u64) -> io::Result<Self> {
        // SAFETY: a literal with its zero.
        let fd = unsafe {
            libc::memfd_create(
                c"jobtrace-disk".as_ptr(),
                libc::MFD_ALLOW_SEALING | libc::MFD_CLOEXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, owned by nobody else.
        let memory = unsafe { File::from_raw_fd(fd) };
        let piece = vec![0x5a; 1 << 20];
        for at in (0..bytes).step_by(piece.len()) {
            memory.write_all_at(&piece[..piece.len().min((bytes - at) as usize)], at)?;
        }
        let mut attempts = 1..ATTEMPTS;
        loop {
            match attach(&memory) {
                Ok((device, number)) => return Ok(Self { memory, _device: device, number }),
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    attempts.next().ok_or(error)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The same, for a test.
    ///
    /// # Panics
    /// Where [`Self::create`] fails.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self::create(bytes).unwrap_or_else(|error| {
            panic!("no loop device: {error}; root and the module loop are needed")
        })
    }

    /// Its name, the tag `device`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("loop{}", self.number)
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/dev/{}", self.name())
    }

    /// Takes the memory past `bytes` away: reads and writes there end in EIO from now on.
    ///
    /// # Panics
    /// When the kernel refuses.
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
