//! Who asks, as the kernel says: never as the client does.

use std::{io, mem, os::fd::AsRawFd};

/// Most groups of a process that are looked at: the kernel's own limit.
const MOST_GROUPS: usize = 65_536;

/// A client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its user.
    pub uid: u32,
    /// Whether it is told of everybody's jobs.
    pub sees_all: bool,
}

impl Caller {
    /// Whoever is at the other end of `stream`; those of `group` see all.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn of(stream: &tokio::net::UnixStream, group: Option<u32>) -> io::Result<Self> {
        let credentials = stream.peer_cred()?;
        let (uid, gid) = (credentials.uid(), credentials.gid());
        let is_member = group.is_some_and(|group| gid == group || groups(stream).contains(&group));
        Ok(Self { uid, sees_all: uid == 0 || is_member })
    }

    /// Whether it may know of a job of `owner`.
    pub fn may_see(self, owner: Option<u32>) -> bool {
        self.sees_all || owner == Some(self.uid)
    }

    /// Whether it may have the file operations of a job of `owner` counted: that costs something, and tells names of
    /// files.
    pub fn may_dive(self, owner: Option<u32>) -> bool {
        self.uid == 0 || owner == Some(self.uid)
    }

    /// Who it is, in words. A name would have to be asked for.
    pub fn who(self) -> String {
        if self.uid == 0 { "root".into() } else { format!("user {}", self.uid) }
    }
}

/// The further groups of whoever connected; none where this kernel (before 4.13) does not say.
fn groups(stream: &impl AsRawFd) -> Vec<u32> {
    let mut groups = vec![0_u32; 64];
    loop {
        let mut length = (groups.len() * mem::size_of::<u32>()) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes, which `groups` has, and sets it to how many there are.
        let got = unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        let count = length as usize / mem::size_of::<u32>();
        if got == 0 {
            groups.truncate(count);
            return groups;
        }
        let is_short = io::Error::last_os_error().raw_os_error() == Some(libc::ERANGE);
        if !is_short || count > MOST_GROUPS || count <= groups.len() {
            return Vec::new();
        }
        groups.resize(count, 0);
    }
}
