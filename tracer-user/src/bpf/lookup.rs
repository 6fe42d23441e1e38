//! Elements of array maps, by the bpf() commands themselves: read into memory of the caller's, so that a
//! reading of hundreds of maps allocates nothing, and cleared. And the statistics of programs, which /proc tells too, at
//! ten times the cost.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    sync::OnceLock,
};

use anyhow::{Result, anyhow};
use aya::maps::Map;

const MAP_LOOKUP_ELEM: libc::c_int = 1;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
/// `struct bpf_prog_info` up to what is read here, in words, and where its `run_time_ns`, `run_cnt` and
/// `recursion_misses` (from 5.12 on) are.
const PROGRAM_WORDS: usize = 27;
const RUNS_AT: usize = 24;

/// `union bpf_attr` as both commands use it.
#[repr(C)]
struct Element {
    map_fd: u32,
    _pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// `union bpf_attr` of a question about an object.
#[repr(C)]
struct Question {
    fd: u32,
    bytes: u32,
    info: u64,
}

/// Time that `program` ran, in nanoseconds, how often, and how often it was not run because it ran already.
///
/// # Errors
/// When the kernel refuses.
pub fn statistics(program: BorrowedFd<'_>) -> io::Result<[u64; 3]> {
    let mut info = [0_u64; PROGRAM_WORDS];
    let question = Question {
        fd: program.as_raw_fd().cast_unsigned(),
        bytes: size_of_val(&info) as u32,
        info: info.as_mut_ptr() as u64,
    };
    // SAFETY: the kernel writes as many bytes as are told at most; the zeros ask for no lists.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, OBJ_GET_INFO_BY_FD, &question, size_of::<Question>())
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok([info[RUNS_AT], info[RUNS_AT + 1], info[RUNS_AT + 2]])
}

/// Reads element 0 of the array `map` to `value`.
///
/// # Safety
/// At `value` there is room for the map's value size; for a per-CPU map, for that rounded up to whole
/// words, once for each possible CPU.
///
/// # Errors
/// When the kernel refuses.
pub unsafe fn lookup(map: BorrowedFd<'_>, value: *mut u8) -> io::Result<()> {
    // SAFETY: the caller's.
    unsafe { element(MAP_LOOKUP_ELEM, map, 0, value) }
}

/// Puts the map `inner` into place `index` of the array of maps `outer`; comes back when no program runs any more that
/// may have seen what was there before: a grace period, 10 ms or so.
///
/// # Errors
/// When the kernel refuses.
pub fn place(outer: BorrowedFd<'_>, index: u32, inner: BorrowedFd<'_>) -> io::Result<()> {
    let mut inner = inner.as_raw_fd();
    // SAFETY: the value is a map's descriptor.
    unsafe { element(MAP_UPDATE_ELEM, outer, index, (&raw mut inner).cast()) }
}

/// The only value of the array `map`, whose size the kernel knows.
///
/// # Errors
/// When it is no array, or the kernel refuses.
pub fn read(map: &Map) -> Result<Vec<u8>> {
    let Map::Array(map) = map else { return Err(anyhow!("the map is no array")) };
    let mut bytes = vec![0_u8; map.info()?.value_size() as usize];
    // SAFETY: as many bytes as the map's values have.
    unsafe { lookup(map.fd().as_fd(), bytes.as_mut_ptr()) }?;
    Ok(bytes)
}

/// Sets the only value of the array `map` to zeros.
///
/// # Errors
/// When it is no array, or the kernel refuses.
pub fn clear(map: &Map) -> Result<()> {
    let Map::Array(map) = map else { return Err(anyhow!("the map is no array")) };
    let mut bytes = vec![0_u8; map.info()?.value_size() as usize];
    // SAFETY: as many bytes as the map's values have.
    let done = unsafe { element(MAP_UPDATE_ELEM, map.fd().as_fd(), 0, bytes.as_mut_ptr()) };
    done.map_err(|error| anyhow!("{error}"))
}

/// Runs `command` on element `key` of the array `map`.
///
/// # Safety
/// At `value` there is what the command reads or has room for.
unsafe fn element(
    command: libc::c_int,
    map: BorrowedFd<'_>,
    key: u32,
    value: *mut u8,
) -> io::Result<()> {
    let attr = Element {
        map_fd: map.as_raw_fd().cast_unsigned(),
        _pad: 0,
        key: std::ptr::from_ref(&key) as u64,
        value: value as u64,
        flags: 0,
    };
    // SAFETY: the kernel reads `attr` and the key; of the value, the caller's.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &attr, size_of::<Element>()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// CPUs for which the kernel allocates; asked once, for they stay while the machine runs.
fn possible_cpus() -> io::Result<usize> {
    static CPUS: OnceLock<usize> = OnceLock::new();
    if let Some(cpus) = CPUS.get() {
        return Ok(*cpus);
    }
    let cpus = aya::util::nr_cpus().map_err(|(_, error)| error)?;
    Ok(*CPUS.get_or_init(|| cpus))
}

/// Room for the values of one element of a per-CPU map, as large as the largest read so far.
#[derive(Default)]
pub struct CpuValues {
    words: Vec<u64>,
}

impl CpuValues {
    /// The values of element 0 of `map`, whose values are `T`s: one of each possible CPU.
    ///
    /// # Errors
    /// When the kernel refuses, or does not tell for how many CPUs it allocates.
    pub fn read<T>(
        &mut self,
        map: BorrowedFd<'_>,
    ) -> io::Result<impl ExactSizeIterator<Item = &[u8]>> {
        let cpus = possible_cpus()?;
        let value_words = size_of::<T>().div_ceil(8);
        let needed = cpus * value_words;
        if self.words.len() < needed {
            self.words.resize(needed, 0);
        }
        let words = &mut self.words[..needed];
        // SAFETY: so many words; the maps are made with the size of their types.
        unsafe { lookup(map, words.as_mut_ptr().cast()) }?;
        let bytes = bytes_of_words(words);
        Ok(bytes.chunks_exact(value_words * 8).map(|value| &value[..size_of::<T>()]))
    }
}

/// The values of element 0 of the per-CPU array `map`: one of each possible CPU.
///
/// # Safety
/// The map's values are `T`s, whole words that any bytes make.
///
/// # Errors
/// As [`CpuValues::read`].
pub unsafe fn read_values<T>(map: BorrowedFd<'_>) -> io::Result<Vec<T>> {
    const { assert!(size_of::<T>().is_multiple_of(8), "the kernel copies whole words") };
    let cpus = possible_cpus()?;
    let mut values = Vec::<T>::with_capacity(cpus);
    // SAFETY: there is room for so many; the kernel fills them, and any bytes make one.
    unsafe {
        lookup(map, values.as_mut_ptr().cast())?;
        values.set_len(cpus);
    }
    Ok(values)
}

/// The bytes of `words`.
pub fn bytes_of_words(words: &[u64]) -> &[u8] {
    // SAFETY: integers, any byte of which may be read.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}
