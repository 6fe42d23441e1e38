//! What each system call does to files, by this machine's numbers: the table that the programs look calls up in.
//! A call that is not listed is no operation.

use tracer_ebpf::{
    calls::CALLS,
    io_calls::{IoCall, IoCalls, NONE, OF_32_BITS, OF_OTHER_NUMBERS, SUBMISSION, place},
    tables::io::op,
};

#[cfg(target_arch = "x86_64")]
#[allow(non_upper_case_globals, reason = "called as the C library calls them")]
mod i386;

/// Calls that do the same.
struct Row {
    call: IoCall,
    numbers: &'static [libc::c_long],
}

/// Calls by the names of their numbers.
macro_rules! calls {
    [$of:ident: $($number:ident)*] => { &[$($of::$number),*] };
}

/// Operation `op`, whose file system `place` finds.
const fn row(op: u32, place: u32, numbers: &'static [libc::c_long]) -> Row {
    Row { call: IoCall::new(op, place), numbers }
}

/// The same, where the path follows a folder's descriptor.
const fn at(op: u32, place: u32, numbers: &'static [libc::c_long]) -> Row {
    Row { call: IoCall::new(op, place).at(), numbers }
}

/// The same, where the call returns how many bytes it moved.
const fn moving(op: u32, place: u32, numbers: &'static [libc::c_long]) -> Row {
    Row { call: IoCall::new(op, place).moves(), numbers }
}

/// The same, where the fourth argument is the offset.
const fn moving_at(op: u32, numbers: &'static [libc::c_long]) -> Row {
    Row { call: IoCall::new(op, place::FIRST).moves().at_offset(), numbers }
}

/// Calls that this machine's C library need not know yet: all machines have the same numbers for what came since 2019.
const SYS_FCHMODAT2: libc::c_long = 452;
const SYS_SETXATTRAT: libc::c_long = 463;
const SYS_GETXATTRAT: libc::c_long = 464;
const SYS_LISTXATTRAT: libc::c_long = 465;
const SYS_REMOVEXATTRAT: libc::c_long = 466;
const SYS_FILE_GETATTR: libc::c_long = 468;
const SYS_FILE_SETATTR: libc::c_long = 469;

/// What all machines have, by the numbers of one.
macro_rules! rows {
    ($of:ident) => {
        &[
            moving(op::READ, place::FIRST, calls![$of: SYS_read SYS_readv]),
            moving_at(op::READ, calls![$of: SYS_pread64 SYS_preadv SYS_preadv2]),
            moving(op::WRITE, place::FIRST, calls![$of: SYS_write SYS_writev]),
            moving_at(op::WRITE, calls![$of: SYS_pwrite64 SYS_pwritev SYS_pwritev2]),
            moving(op::COPY, place::FIRST, calls![$of: SYS_copy_file_range]),
            moving(op::SENDFILE, place::SECOND, calls![$of: SYS_sendfile]),
            Row {
                call: IoCall::new(op::SPLICE, place::FIRST).moves().out_of_pipe(),
                numbers: calls![$of: SYS_splice],
            },
            moving(op::SPLICE, place::FIRST, calls![$of: SYS_tee SYS_vmsplice]),
            at(op::OPEN, place::OPENED, calls![$of: SYS_openat SYS_openat2]),
            row(op::OPEN, place::OPENED, calls![$of: SYS_open_by_handle_at]),
            row(op::CLOSE, place::CLOSED, calls![$of: SYS_close]),
            row(op::CLOSE, place::UNKNOWN, calls![$of: SYS_close_range]),
            row(op::FSYNC, place::FIRST, calls![$of: SYS_fsync SYS_fdatasync SYS_syncfs]),
            // Of a mapping its address alone is told.
            row(op::FSYNC, place::UNKNOWN, calls![$of: SYS_sync SYS_msync]),
            row(
                op::STAT,
                place::FIRST,
                calls![$of: SYS_fstat SYS_fstatfs SYS_fgetxattr SYS_flistxattr SYS_fchdir],
            ),
            at(op::STAT, place::STAT, calls![$of: SYS_newfstatat]),
            at(op::STAT, place::STATX, calls![$of: SYS_statx]),
            at(
                op::STAT,
                place::PATH,
                calls![$of: SYS_faccessat SYS_faccessat2 SYS_readlinkat SYS_name_to_handle_at],
            ),
            row(
                op::STAT,
                place::PATH,
                calls![$of: SYS_statfs SYS_chdir SYS_getxattr SYS_lgetxattr SYS_listxattr SYS_llistxattr],
            ),
            at(op::STAT, place::PATH, &[SYS_GETXATTRAT, SYS_LISTXATTRAT, SYS_FILE_GETATTR]),
            row(op::GETDENTS, place::FIRST, calls![$of: SYS_getdents64]),
            row(op::SEEK, place::FIRST, calls![$of: SYS_lseek]),
            at(op::UNLINK, place::PATH, calls![$of: SYS_unlinkat]),
            at(op::RENAME, place::PATH, calls![$of: SYS_renameat2]),
            at(op::LINK, place::PATH, calls![$of: SYS_linkat]),
            Row {
                call: IoCall::new(op::LINK, place::PATH).at().after_text(),
                numbers: calls![$of: SYS_symlinkat],
            },
            at(op::MKDIR, place::PATH, calls![$of: SYS_mkdirat SYS_mknodat]),
            at(op::SETATTR, place::PATH, calls![$of: SYS_fchmodat SYS_fchownat SYS_utimensat]),
            at(
                op::SETATTR,
                place::PATH,
                &[SYS_FCHMODAT2, SYS_SETXATTRAT, SYS_REMOVEXATTRAT, SYS_FILE_SETATTR],
            ),
            row(op::SETATTR, place::FIRST, calls![$of: SYS_fchmod SYS_fchown SYS_fsetxattr SYS_fremovexattr]),
            row(
                op::SETATTR,
                place::PATH,
                calls![$of: SYS_setxattr SYS_lsetxattr SYS_removexattr SYS_lremovexattr],
            ),
            row(op::TRUNCATE, place::PATH, calls![$of: SYS_truncate]),
            row(op::TRUNCATE, place::FIRST, calls![$of: SYS_ftruncate]),
            row(op::FALLOCATE, place::FIRST, calls![$of: SYS_fallocate]),
            row(op::IOCTL, place::FIRST, calls![$of: SYS_ioctl]),
            row(op::LOCK, place::FIRST, calls![$of: SYS_flock]),
            Row { call: IoCall::new(op::LOCK, place::FIRST).locks(), numbers: calls![$of: SYS_fcntl] },
            Row { call: SUBMISSION, numbers: calls![$of: SYS_io_submit] },
        ]
    };
}

/// What only PCs have.
#[cfg(target_arch = "x86_64")]
macro_rules! old_rows {
    ($of:ident) => {
        &[
            row(op::OPEN, place::OPENED, calls![$of: SYS_open SYS_creat]),
            row(op::FSYNC, place::FIRST, calls![$of: SYS_sync_file_range]),
            row(op::STAT, place::STAT, calls![$of: SYS_stat SYS_lstat]),
            row(op::STAT, place::PATH, calls![$of: SYS_access SYS_readlink]),
            row(op::GETDENTS, place::FIRST, calls![$of: SYS_getdents]),
            row(op::UNLINK, place::PATH, calls![$of: SYS_unlink SYS_rmdir]),
            row(op::RENAME, place::PATH, calls![$of: SYS_rename]),
            at(op::RENAME, place::PATH, calls![$of: SYS_renameat]),
            row(op::LINK, place::PATH, calls![$of: SYS_link]),
            Row {
                call: IoCall::new(op::LINK, place::PATH).after_text(),
                numbers: calls![$of: SYS_symlink],
            },
            row(op::MKDIR, place::PATH, calls![$of: SYS_mkdir SYS_mknod]),
            row(op::SETATTR, place::PATH, calls![$of: SYS_chmod SYS_chown SYS_lchown SYS_utime SYS_utimes]),
            at(op::SETATTR, place::PATH, calls![$of: SYS_futimesat]),
        ]
    };
}

static ROWS: &[Row] = rows!(libc);

#[cfg(target_arch = "x86_64")]
static OLD: &[Row] = old_rows!(libc);
#[cfg(target_arch = "aarch64")]
static OLD: &[Row] = &[at(op::RENAME, place::PATH, &[38]), row(op::FSYNC, place::FIRST, &[84])];

/// Of calls of 32 bits; without any the numbers of this machine's are not known here.
#[cfg(target_arch = "x86_64")]
static OF_32: &[&[Row]] = &[rows!(i386), old_rows!(i386), i386::ROWS];
#[cfg(target_arch = "aarch64")]
static OF_32: &[&[Row]] = &[];

/// The table.
pub fn table() -> IoCalls {
    let mut table = [NONE.0 as u16; 2 * CALLS];
    let (own, of_32) = table.split_at_mut(OF_32_BITS);
    for (call, number) in listed(&[ROWS, OLD]) {
        own[number as usize] = call.0 as u16;
    }
    if OF_32.is_empty() {
        of_32.fill(OF_OTHER_NUMBERS.0 as u16);
    }
    for (call, number) in listed(OF_32) {
        of_32[number as usize] = call.of_32_bits().0 as u16;
    }
    table
}

/// Calls of `rows`, by their numbers.
fn listed(rows: &[&'static [Row]]) -> impl Iterator<Item = (IoCall, libc::c_long)> {
    let rows = rows.iter().flat_map(|rows| rows.iter());
    rows.flat_map(|row| row.numbers.iter().map(|number| (row.call, *number)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tracer_ebpf::tables::io::CALL_OPS;

    use super::*;

    #[test]
    fn each_call_is_listed_once_and_each_operation_has_one() {
        let of_machine: &[&[Row]] = &[ROWS, OLD];
        for rows in [of_machine, OF_32].into_iter().filter(|rows| !rows.is_empty()) {
            let numbers: Vec<_> = listed(rows).map(|(_, number)| number).collect();
            let distinct: BTreeSet<_> = numbers.iter().collect();
            assert_eq!(distinct.len(), numbers.len());
            assert!(numbers.iter().all(|number| (0..CALLS as i64).contains(number)));
            let ops = listed(rows).filter(|(call, _)| call.is_some()).map(|(call, _)| call.op());
            assert_eq!(ops.collect::<BTreeSet<_>>(), (0..CALL_OPS).collect());
        }
        let table = table();
        let of = |number: i64| IoCall(table[number as usize].into());
        assert_eq!(of(libc::SYS_pread64).op(), op::READ);
        assert!(of(libc::SYS_pwritev2).is_at_offset() && !of(libc::SYS_write).is_at_offset());
        assert!(of(libc::SYS_openat).is_at() && of(libc::SYS_fcntl).is_lock_by_command());
        assert!(!of(libc::SYS_futex).is_some() && !of(libc::SYS_pread64).is_of_32_bits());
        assert!(of(libc::SYS_io_submit).is_submission());
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn calls_of_32_bits_have_their_own_numbers() {
        let table = table();
        let of = |number: usize| IoCall(table[OF_32_BITS + number].into());
        // Three is the number of close in 64 bits, of read in 32.
        assert_eq!(IoCall(table[3].into()).op(), op::CLOSE);
        assert!(of(3).op() == op::READ && of(3).is_of_32_bits());
        assert!(of(248).is_submission() && of(248).is_of_32_bits());
        assert!(!of(240).is_some() && !of(240).is_of_other_numbers());
    }
}
