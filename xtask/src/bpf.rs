//! The few bpf() commands that the chores need to see what is loaded and what it costs. jobtrace
//! itself uses aya; these look at the kernel from outside, so that a fault of ours cannot hide.

use anyhow::{Context, Result};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const PROG_GET_NEXT_ID: libc::c_int = 11;
const PROG_GET_FD_BY_ID: libc::c_int = 13;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const LINK_GET_FD_BY_ID: libc::c_int = 30;
const LINK_GET_NEXT_ID: libc::c_int = 31;
const ENABLE_STATS: libc::c_int = 32;

/// `union bpf_attr` as far as these commands use it: each is a prefix of it.
#[derive(Default)]
#[repr(C, align(8))]
struct Attr {
    words: [u32; 4],
}

/// `struct bpf_prog_info` up to `verified_insns`.
#[repr(C)]
struct ProgInfo {
    before_sizes: [u32; 4],
    machine_code_bytes: u32,
    translated_bytes: u32,
    before_name: [u64; 5],
    name: [u8; 16],
    before_stats: [u64; 14],
    run_time_ns: u64,
    run_count: u64,
    misses: u64,
    verified: u32,
    end: u32,
}

/// `struct bpf_link_info` up to `prog_id`.
#[derive(Default)]
#[repr(C)]
struct LinkInfo {
    kind: u32,
    id: u32,
    program: u32,
}

/// A loaded program's name, cut to 15 bytes by the kernel, and what it has run so far; the times
/// stand still unless statistics are on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The name that the kernel kept.
    pub name: String,
    /// Time in the program, statistics' own included.
    pub run_time_ns: u64,
    /// Number of runs.
    pub run_count: u64,
    /// Length of its machine code.
    pub machine_code_bytes: u32,
    /// Length of its BPF code as the verifier left it.
    pub translated_bytes: u32,
    /// Instructions that the verifier walked through; 0 where this kernel does not tell.
    pub verified: u32,
}

/// The kernel keeps this much of a program's name.
const NAME_BYTES: usize = 15;

/// Whether the kernel's name of `program` is `name`.
pub fn is_named(program: &Program, name: &str) -> bool {
    program.name.as_bytes() == &name.as_bytes()[..name.len().min(NAME_BYTES)]
}

fn bpf(command: libc::c_int, attr: &mut Attr) -> io::Result<libc::c_int> {
    // SAFETY: the kernel reads and writes `size` bytes of `attr` at most, and the object that
    // OBJ_GET_INFO_BY_FD points to outlives the call in `info`.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attr, size_of::<Attr>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}

fn open(command: libc::c_int, argument: u32) -> io::Result<OwnedFd> {
    let fd = bpf(command, &mut Attr { words: [argument, 0, 0, 0] })?;
    // SAFETY: the kernel has just given us this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn info<T>(fd: &OwnedFd, info: &mut T) -> io::Result<()> {
    let address = std::ptr::from_mut(info) as u64;
    let halves = if cfg!(target_endian = "little") {
        [address as u32, (address >> 32) as u32]
    } else {
        [(address >> 32) as u32, address as u32]
    };
    let size = u32::try_from(size_of::<T>()).unwrap_or(u32::MAX);
    let words = [fd.as_raw_fd().cast_unsigned(), size, halves[0], halves[1]];
    bpf(OBJ_GET_INFO_BY_FD, &mut Attr { words }).map(drop)
}

fn ids(next: libc::c_int) -> Result<Vec<u32>> {
    let mut ids = Vec::new();
    let mut attr = Attr::default();
    loop {
        match bpf(next, &mut attr) {
            Ok(_) => {
                ids.push(attr.words[1]);
                attr.words = [attr.words[1], 0, 0, 0];
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(ids),
            Err(error) => return Err(error).context("list what BPF holds: this needs root"),
        }
    }
}

/// Ids of all loaded programs.
///
/// # Errors
/// When the kernel refuses, as it does to all but root.
pub fn programs() -> Result<Vec<u32>> {
    ids(PROG_GET_NEXT_ID)
}

/// Ids of all links, each with its program's id; links that vanish meanwhile are left out.
///
/// # Errors
/// When the kernel refuses, as it does to all but root.
pub fn links() -> Result<Vec<(u32, u32)>> {
    let program = |id| {
        let mut link = LinkInfo::default();
        info(&open(LINK_GET_FD_BY_ID, id).ok()?, &mut link).ok()?;
        Some((id, link.program))
    };
    Ok(ids(LINK_GET_NEXT_ID)?.into_iter().filter_map(program).collect())
}

/// Holds a program, so that its figures can be read after its owner has ended.
///
/// # Errors
/// When it is gone already.
pub fn hold(id: u32) -> Result<OwnedFd> {
    open(PROG_GET_FD_BY_ID, id).with_context(|| format!("open BPF program {id}"))
}

/// A held program's name and figures.
///
/// # Errors
/// When the kernel refuses.
pub fn program(held: &OwnedFd) -> Result<Program> {
    let mut raw = ProgInfo {
        before_sizes: [0; 4],
        machine_code_bytes: 0,
        translated_bytes: 0,
        before_name: [0; 5],
        name: [0; 16],
        before_stats: [0; 14],
        run_time_ns: 0,
        run_count: 0,
        misses: 0,
        verified: 0,
        end: 0,
    };
    info(held, &mut raw).context("read about a BPF program")?;
    let name = raw.name.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(Program {
        name: String::from_utf8_lossy(name).into_owned(),
        run_time_ns: raw.run_time_ns,
        run_count: raw.run_count,
        machine_code_bytes: raw.machine_code_bytes,
        translated_bytes: raw.translated_bytes,
        verified: raw.verified,
    })
}

/// Switches run statistics on until the result is dropped or this process ends, however it ends:
/// unlike the sysctl, which a crash would leave on.
///
/// # Errors
/// When the kernel refuses or is older than 5.8.
pub fn enable_stats() -> Result<OwnedFd> {
    open(ENABLE_STATS, 0).context("switch BPF statistics on: this needs root and Linux 5.8")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn layouts_are_the_kernels() {
        assert_eq!(offset_of!(ProgInfo, translated_bytes), 20);
        assert_eq!(offset_of!(ProgInfo, name), 64);
        assert_eq!(offset_of!(ProgInfo, run_time_ns), 192);
        assert_eq!(offset_of!(ProgInfo, run_count), 200);
        assert_eq!(offset_of!(ProgInfo, verified), 216);
        assert_eq!(offset_of!(LinkInfo, program), 8);
    }
}
