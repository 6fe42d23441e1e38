//! BPF_MAP_LOOKUP_ELEM itself, into memory of the caller's: a reading of hundreds of maps allocates
//! nothing.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
    sync::OnceLock,
};

use aya::Pod;

const MAP_LOOKUP_ELEM: libc::c_int = 1;

/// `union bpf_attr` as BPF_MAP_LOOKUP_ELEM uses it.
#[repr(C)]
struct Lookup {
    map_fd: u32,
    _pad: u32,
    key: u64,
    value: u64,
    flags: u64,
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
    let key = 0_u32;
    let attr = Lookup {
        map_fd: map.as_raw_fd().cast_unsigned(),
        _pad: 0,
        key: std::ptr::from_ref(&key) as u64,
        value: value as u64,
        flags: 0,
    };
    // SAFETY: the kernel reads `attr` and the key, and writes to `value` what the caller has room for.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, MAP_LOOKUP_ELEM, &attr, size_of::<Lookup>()) };
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
    pub fn read<T>(&mut self, map: BorrowedFd<'_>) -> io::Result<Vec<&[u8]>> {
        let cpus = possible_cpus()?;
        let value_words = size_of::<T>().div_ceil(8);
        let needed = cpus * value_words;
        if self.words.len() < needed {
            self.words.resize(needed, 0);
        }
        let words = &mut self.words[..needed];
        // SAFETY: so many words; the maps are made with the size of their types.
        unsafe { lookup(map, words.as_mut_ptr().cast()) }?;
        let bytes = super::decode::bytes_of_words(words);
        Ok(bytes.chunks_exact(value_words * 8).map(|value| &value[..size_of::<T>()]).collect())
    }

    /// Copies of the same.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn copy<T: Pod>(&mut self, map: BorrowedFd<'_>) -> io::Result<Vec<T>> {
        let values = self.read::<T>(map)?;
        // SAFETY: each has the size of T, which any bytes make.
        let copy = |value: &&[u8]| unsafe { value.as_ptr().cast::<T>().read_unaligned() };
        Ok(values.iter().map(copy).collect())
    }
}
