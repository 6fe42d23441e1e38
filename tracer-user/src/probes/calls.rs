//! What each system call waits for, by this machine's numbers: the table that the programs look calls up in.
//! A call that is not listed is `other`.

use tracer_ebpf::{
    calls::{CALLS, Call, Calls, OTHER, file},
    tables::wait::{blocked, sleep},
};

/// A call's name, with the prefix of its number's, and that number.
type Named = (&'static str, libc::c_long);

/// Calls that wait for the same.
struct Row {
    call: Call,
    calls: &'static [Named],
}

/// Calls by the names of their numbers.
macro_rules! calls {
    ($($number:ident)*) => { &[$((stringify!($number), libc::$number)),*] };
}

/// Where a sleep in the call is of one cause, and a block of another.
const fn row(sleep: u32, blocked: u32, file: u32, calls: &'static [Named]) -> Row {
    Row { call: Call::new(sleep, blocked, file), calls }
}

/// Where nothing but a file system makes the call sleep.
const fn of_file(blocked: u32, file: u32, calls: &'static [Named]) -> Row {
    Row { call: Call::new(sleep::OTHER, blocked, file).file_sleeps(), calls }
}

/// Where the call has a file of any kind as its first argument: a pipe makes it sleep, or a file system.
const fn of_any(blocked: u32, calls: &'static [Named]) -> Row {
    Row { call: Call::new(sleep::PIPE, blocked, file::FIRST).file_may_sleep(), calls }
}

static ROWS: &[Row] = &[
    row(sleep::TIMER, blocked::OTHER, file::NONE, calls![SYS_nanosleep SYS_clock_nanosleep]),
    row(sleep::LOCK, blocked::OTHER, file::NONE, calls![SYS_futex SYS_futex_waitv]),
    // Newer than the constants; from 424 on all machines number calls alike.
    row(
        sleep::LOCK,
        blocked::OTHER,
        file::NONE,
        &[("SYS_futex_wake", 454), ("SYS_futex_wait", 455), ("SYS_futex_requeue", 456)],
    ),
    row(sleep::LOCK, blocked::METADATA, file::FIRST, calls![SYS_flock SYS_fcntl]),
    row(
        sleep::POLL,
        blocked::OTHER,
        file::NONE,
        calls![SYS_ppoll SYS_pselect6 SYS_epoll_pwait SYS_epoll_pwait2],
    ),
    row(
        sleep::SOCKET,
        blocked::OTHER,
        file::NONE,
        calls![
            SYS_recvfrom SYS_recvmsg SYS_recvmmsg SYS_sendto SYS_sendmsg SYS_sendmmsg SYS_accept
            SYS_accept4 SYS_connect
        ],
    ),
    of_any(blocked::READ, calls![SYS_read SYS_readv SYS_preadv2]),
    of_any(blocked::WRITE, calls![SYS_write SYS_writev SYS_pwritev2]),
    Row {
        call: Call::new(sleep::PIPE, blocked::READ, file::FIRST).out_of_pipe(),
        calls: calls![SYS_splice],
    },
    row(sleep::PIPE, blocked::READ, file::FIRST, calls![SYS_tee]),
    row(sleep::PIPE, blocked::OTHER, file::NONE, calls![SYS_vmsplice]),
    row(sleep::PIPE, blocked::READ, file::SECOND, calls![SYS_sendfile]),
    row(sleep::CHILD, blocked::OTHER, file::NONE, calls![SYS_wait4 SYS_waitid]),
    row(sleep::SIGNAL, blocked::OTHER, file::NONE, calls![SYS_rt_sigsuspend SYS_rt_sigtimedwait]),
    row(
        sleep::MESSAGE,
        blocked::OTHER,
        file::NONE,
        calls![
            SYS_msgrcv SYS_msgsnd SYS_semop SYS_semtimedop SYS_mq_timedreceive SYS_mq_timedsend
        ],
    ),
    row(sleep::RING, blocked::OTHER, file::NONE, calls![SYS_io_uring_enter SYS_io_getevents]),
    row(sleep::IOCTL, blocked::IOCTL, file::NONE, calls![SYS_ioctl]),
    // A pipe refuses them.
    of_file(
        blocked::READ,
        file::FIRST,
        calls![SYS_pread64 SYS_preadv SYS_copy_file_range SYS_readahead SYS_fadvise64],
    ),
    of_file(blocked::WRITE, file::FIRST, calls![SYS_pwrite64 SYS_pwritev SYS_fallocate]),
    of_file(blocked::SYNC, file::FIRST, calls![SYS_fsync SYS_fdatasync SYS_syncfs]),
    // By the time close waits its descriptor is gone.
    of_file(blocked::SYNC, file::NONE, calls![SYS_sync SYS_msync SYS_close SYS_close_range]),
    of_file(
        blocked::METADATA,
        file::FIRST,
        calls![
            SYS_fstat SYS_fstatfs SYS_getdents64 SYS_lseek SYS_ftruncate SYS_fchmod SYS_fchown
            SYS_fchdir SYS_fgetxattr SYS_fsetxattr SYS_flistxattr SYS_fremovexattr
        ],
    ),
    // A folder that the path begins at, or the file itself (fstat); mostly neither.
    of_file(
        blocked::METADATA,
        file::FIRST,
        calls![
            SYS_openat SYS_openat2 SYS_newfstatat SYS_statx SYS_faccessat SYS_faccessat2
            SYS_readlinkat SYS_unlinkat SYS_renameat2 SYS_mkdirat SYS_mknodat SYS_linkat
            SYS_fchmodat SYS_fchownat SYS_utimensat SYS_name_to_handle_at
        ],
    ),
    of_file(
        blocked::METADATA,
        file::NONE,
        calls![
            SYS_statfs SYS_truncate SYS_symlinkat SYS_chdir SYS_getcwd SYS_getxattr SYS_lgetxattr
            SYS_setxattr SYS_lsetxattr SYS_listxattr SYS_llistxattr SYS_removexattr
            SYS_lremovexattr SYS_open_by_handle_at
        ],
    ),
    row(
        sleep::OTHER,
        blocked::MEMORY,
        file::NONE,
        calls![
            SYS_mmap SYS_munmap SYS_mremap SYS_brk SYS_mprotect SYS_pkey_mprotect SYS_madvise
            SYS_process_madvise SYS_mlock SYS_mlock2 SYS_munlock SYS_mlockall SYS_munlockall
            SYS_mincore SYS_mbind SYS_migrate_pages SYS_move_pages SYS_remap_file_pages
        ],
    ),
    row(sleep::OTHER, blocked::CHILD, file::NONE, calls![SYS_clone SYS_clone3]),
    row(sleep::OTHER, blocked::EXEC, file::NONE, calls![SYS_execve SYS_execveat]),
    row(sleep::OTHER, blocked::EXIT, file::NONE, calls![SYS_exit SYS_exit_group]),
    // A nanosleep, futex or poll with an end, after its task was stopped or frozen.
    Row { call: OTHER.resumed(), calls: calls![SYS_restart_syscall] },
];

/// Calls of which only this machine has the number.
#[cfg(target_arch = "x86_64")]
static OLD: &[Row] = &[
    row(
        sleep::POLL,
        blocked::OTHER,
        file::NONE,
        calls![SYS_poll SYS_select SYS_epoll_wait SYS_epoll_wait_old],
    ),
    row(sleep::SIGNAL, blocked::OTHER, file::NONE, calls![SYS_pause]),
    row(sleep::RING, blocked::OTHER, file::NONE, &[("SYS_io_pgetevents", 333)]),
    of_file(blocked::SYNC, file::FIRST, calls![SYS_sync_file_range]),
    row(sleep::OTHER, blocked::CHILD, file::NONE, calls![SYS_vfork SYS_fork]),
    of_file(blocked::METADATA, file::FIRST, calls![SYS_getdents]),
    of_file(
        blocked::METADATA,
        file::NONE,
        calls![
            SYS_open SYS_creat SYS_stat SYS_lstat SYS_access SYS_readlink SYS_unlink SYS_rmdir
            SYS_rename SYS_renameat SYS_mkdir SYS_mknod SYS_link SYS_symlink SYS_chmod SYS_chown
            SYS_lchown SYS_utime SYS_utimes SYS_futimesat
        ],
    ),
];

/// Calls of which only this machine has the number.
#[cfg(target_arch = "aarch64")]
static OLD: &[Row] = &[
    of_file(blocked::METADATA, file::NONE, &[("SYS_renameat", 38)]),
    of_file(blocked::SYNC, file::FIRST, &[("SYS_sync_file_range", 84)]),
    row(sleep::RING, blocked::OTHER, file::NONE, &[("SYS_io_pgetevents", 292)]),
];

/// The table.
pub fn table() -> Calls {
    let mut table = [OTHER.0 as u16; CALLS];
    for (call, number) in all() {
        table[number as usize] = call.0 as u16;
    }
    table
}

/// All calls, by their numbers.
fn all() -> impl Iterator<Item = (Call, libc::c_long)> {
    let rows = ROWS.iter().chain(OLD);
    rows.flat_map(|row| row.calls.iter().map(|(_, number)| (row.call, *number)))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs};

    use super::*;

    /// The kernel's own header of this machine's numbers, of Debian's linux-libc-dev and of other systems.
    const HEADERS: [&str; 4] = [
        "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
        "/usr/include/asm/unistd_64.h",
        "/usr/include/aarch64-linux-gnu/asm-generic/unistd.h",
        "/usr/include/asm-generic/unistd.h",
    ];

    #[test]
    fn every_number_is_the_kernels() {
        let is_ours = |path: &&str| cfg!(target_arch = "x86_64") == path.contains("unistd_64");
        let header =
            HEADERS.into_iter().filter(is_ours).find_map(|path| fs::read_to_string(path).ok());
        let header = header.expect("the kernel's headers are installed: linux-libc-dev");
        let defined = header.lines().filter_map(|line| {
            let mut words = line.strip_prefix("#define __NR")?.split_whitespace();
            let name = words.next()?.trim_start_matches("3264").trim_start_matches('_');
            Some((name, words.next()?.parse::<libc::c_long>().ok()?))
        });
        let defined: BTreeMap<_, _> = defined.collect();
        assert!(defined.len() > 300, "{} numbers", defined.len());
        let mut unknown = Vec::new();
        for (name, number) in ROWS.iter().chain(OLD).flat_map(|row| row.calls) {
            match defined.get(name.trim_start_matches("SYS_")) {
                Some(theirs) => assert_eq!(number, theirs, "{name}"),
                None => unknown.push(*name),
            }
        }
        // Those that these headers are too old for, or call otherwise.
        assert!(unknown.len() <= 8, "{unknown:?}");
    }

    #[test]
    fn each_call_is_listed_once_and_fits() {
        let numbers: Vec<_> = all().map(|(_, number)| number).collect();
        let distinct: std::collections::BTreeSet<_> = numbers.iter().collect();
        assert_eq!(distinct.len(), numbers.len());
        assert!(numbers.iter().all(|number| (0..CALLS as i64).contains(number)));
        let table = table();
        assert_eq!(Call(table[libc::SYS_read as usize].into()).blocked(), blocked::READ);
        assert_eq!(Call(table[libc::SYS_futex as usize].into()).sleep(), sleep::LOCK);
        assert_eq!(Call(table[libc::SYS_getpid as usize].into()), OTHER);
    }
}
