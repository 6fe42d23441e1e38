//! aya's loader of objects, made without the kernel's types.
//!
//! `EbpfLoader::new` parses all of them, for relocations that our objects do not have (offsets are ours to set:
//! decision 2). That takes 18 MiB, more than all else at a start. Where it finds no file, it does without.

use std::{io, thread};

use aya::EbpfLoader;

/// A loader. Where its thread cannot be kept from the kernel's types, it costs what it says above.
pub fn loader<'a>() -> EbpfLoader<'a> {
    let without_files = || {
        let _ = refuse_files();
        EbpfLoader::new()
    };
    thread::scope(|scope| {
        let made = thread::Builder::new().name("loader".into()).spawn_scoped(scope, without_files);
        made.ok().and_then(|thread| thread.join().ok())
    })
    .unwrap_or_else(EbpfLoader::new)
}

/// From now on this thread, and it alone, finds no file that it opens.
fn refuse_files() -> io::Result<()> {
    // Without it, only root may set a filter. It too binds this thread alone.
    rustix::thread::set_no_new_privs(true)?;
    let instruction = |code: u32, k, jt, jf| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut filter = [
        // The number of the system call, which `seccomp_data` begins with.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_openat as u32, 0, 1),
        instruction(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | libc::ENOENT as u32, 0, 0),
        instruction(libc::BPF_RET, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program =
        libc::sock_fprog { len: filter.len() as libc::c_ushort, filter: filter.as_mut_ptr() };
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: the kernel copies the program, which outlives the call.
    match unsafe { libc::syscall(libc::SYS_seccomp, mode, 0, &raw const program) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn only_the_thread_of_the_loader_finds_no_files() {
        let opened = || File::open("/proc/self/stat").map_err(|error| error.kind());
        let refused = thread::spawn(move || (refuse_files(), opened())).join().unwrap();
        assert!(refused.0.is_ok(), "{:?}", refused.0);
        assert_eq!(refused.1.err(), Some(io::ErrorKind::NotFound));
        assert!(opened().is_ok());
    }
}
