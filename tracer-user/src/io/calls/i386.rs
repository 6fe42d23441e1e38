//! Calls of 32-bit programs on PCs: their numbers, by the names that those of 64 bits have (asm/unistd_32.h), and what
//! these alone have: variants for large files and users' numbers, and those that came before.

use tracer_ebpf::{
    io_calls::{IoCall, place},
    tables::io::op,
};

use super::{Row, at, moving, row};

macro_rules! numbers {
    ($($name:ident = $number:literal),* $(,)?) => {
        $(pub const $name: libc::c_long = $number;)*

        #[cfg(test)]
        const NUMBERS: &[(&str, libc::c_long)] = &[$((stringify!($name), $name)),*];
    };
}

numbers! {
    SYS_read = 3,
    SYS_write = 4,
    SYS_open = 5,
    SYS_close = 6,
    SYS_creat = 8,
    SYS_link = 9,
    SYS_unlink = 10,
    SYS_chdir = 12,
    SYS_mknod = 14,
    SYS_chmod = 15,
    SYS_lchown = 16,
    SYS_oldstat = 18,
    SYS_lseek = 19,
    SYS_oldfstat = 28,
    SYS_utime = 30,
    SYS_access = 33,
    SYS_sync = 36,
    SYS_rename = 38,
    SYS_mkdir = 39,
    SYS_rmdir = 40,
    SYS_ioctl = 54,
    SYS_fcntl = 55,
    SYS_symlink = 83,
    SYS_oldlstat = 84,
    SYS_readlink = 85,
    SYS_readdir = 89,
    SYS_truncate = 92,
    SYS_ftruncate = 93,
    SYS_fchmod = 94,
    SYS_fchown = 95,
    SYS_statfs = 99,
    SYS_fstatfs = 100,
    SYS_stat = 106,
    SYS_lstat = 107,
    SYS_fstat = 108,
    SYS_fsync = 118,
    SYS_fchdir = 133,
    SYS__llseek = 140,
    SYS_getdents = 141,
    SYS_flock = 143,
    SYS_msync = 144,
    SYS_readv = 145,
    SYS_writev = 146,
    SYS_fdatasync = 148,
    SYS_pread64 = 180,
    SYS_pwrite64 = 181,
    SYS_chown = 182,
    SYS_sendfile = 187,
    SYS_truncate64 = 193,
    SYS_ftruncate64 = 194,
    SYS_stat64 = 195,
    SYS_lstat64 = 196,
    SYS_fstat64 = 197,
    SYS_lchown32 = 198,
    SYS_fchown32 = 207,
    SYS_chown32 = 212,
    SYS_getdents64 = 220,
    SYS_fcntl64 = 221,
    SYS_setxattr = 226,
    SYS_lsetxattr = 227,
    SYS_fsetxattr = 228,
    SYS_getxattr = 229,
    SYS_lgetxattr = 230,
    SYS_fgetxattr = 231,
    SYS_listxattr = 232,
    SYS_llistxattr = 233,
    SYS_flistxattr = 234,
    SYS_removexattr = 235,
    SYS_lremovexattr = 236,
    SYS_fremovexattr = 237,
    SYS_sendfile64 = 239,
    SYS_io_submit = 248,
    SYS_statfs64 = 268,
    SYS_fstatfs64 = 269,
    SYS_utimes = 271,
    SYS_openat = 295,
    SYS_mkdirat = 296,
    SYS_mknodat = 297,
    SYS_fchownat = 298,
    SYS_futimesat = 299,
    SYS_newfstatat = 300,
    SYS_unlinkat = 301,
    SYS_renameat = 302,
    SYS_linkat = 303,
    SYS_symlinkat = 304,
    SYS_readlinkat = 305,
    SYS_fchmodat = 306,
    SYS_faccessat = 307,
    SYS_splice = 313,
    SYS_sync_file_range = 314,
    SYS_tee = 315,
    SYS_vmsplice = 316,
    SYS_utimensat = 320,
    SYS_fallocate = 324,
    SYS_preadv = 333,
    SYS_pwritev = 334,
    SYS_name_to_handle_at = 341,
    SYS_open_by_handle_at = 342,
    SYS_syncfs = 344,
    SYS_renameat2 = 353,
    SYS_copy_file_range = 377,
    SYS_preadv2 = 378,
    SYS_pwritev2 = 379,
    SYS_statx = 383,
    SYS_utimensat_time64 = 412,
    SYS_close_range = 436,
    SYS_openat2 = 437,
    SYS_faccessat2 = 439,
}

/// What these alone have.
pub static ROWS: &[Row] = &[
    moving(op::SENDFILE, place::SECOND, &[SYS_sendfile64]),
    row(op::STAT, place::FIRST, &[SYS_fstat64, SYS_oldfstat, SYS_fstatfs64]),
    row(op::STAT, place::STAT, &[SYS_stat64, SYS_lstat64]),
    // What these fill has no room for the number of a device.
    row(op::STAT, place::PATH, &[SYS_oldstat, SYS_oldlstat, SYS_statfs64]),
    row(op::GETDENTS, place::FIRST, &[SYS_readdir]),
    row(op::SEEK, place::FIRST, &[SYS__llseek]),
    row(op::SETATTR, place::FIRST, &[SYS_fchown32]),
    row(op::SETATTR, place::PATH, &[SYS_chown32, SYS_lchown32]),
    at(op::SETATTR, place::PATH, &[SYS_utimensat_time64]),
    row(op::TRUNCATE, place::PATH, &[SYS_truncate64]),
    row(op::TRUNCATE, place::FIRST, &[SYS_ftruncate64]),
    Row { call: IoCall::new(op::LOCK, place::FIRST).locks(), numbers: &[SYS_fcntl64] },
];

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_numbers_are_the_kernels() {
        // Part of the C library's headers, without which nothing is linked.
        let header = fs::read_to_string("/usr/include/x86_64-linux-gnu/asm/unistd_32.h")
            .or_else(|_| fs::read_to_string("/usr/include/asm/unistd_32.h"))
            .expect("asm/unistd_32.h; linux-libc-dev has it");
        for (name, number) in NUMBERS {
            // Of 64 bits it is called otherwise.
            let name = if *name == "SYS_newfstatat" { "SYS_fstatat64" } else { name };
            let line = format!("#define __NR_{} {number}", name.trim_start_matches("SYS_"));
            assert!(header.lines().any(|text| text == line), "{line}");
        }
    }
}
