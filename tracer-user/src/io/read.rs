//! From the cells to groups.

use std::{collections::BTreeMap, mem::offset_of};

use anyhow::{Context, Result};
use aya::maps::{MapData, PerCpuArray, PerCpuHashMap, PerCpuValues};
use tracer_ebpf::tables::io::{IO_CELLS, IoCell, IoCpu, IoKey, OPS};

use super::{errors, mounts::Mounted};
use crate::{
    base::{mounts::Mounts, tag, units::count},
    bpf::{maps::TakeMap, set::Set},
    model::{
        group::{Group, merge_all},
        tables::{IO, IO_ERROR, IoError},
    },
    probes::decode::{Unwrapper, bytes_of_words, cell_place, derive},
};

/// Words of a cell, and of what is known of a CPU.
const CELL_WORDS: usize = size_of::<IoCell>() / 8;
const CPU_WORDS: usize = size_of::<IoCpu>() / 8;
/// Where the magic number is among a cell's words.
const MAGIC: usize = offset_of!(IoCell, magic) / 8;

/// The attached programs and their maps. Dropping it detaches everything.
pub struct Io {
    /// Held: dropping it detaches.
    pub(super) _set: Set,
    pub(super) maps: Maps,
    pub(super) names: Mounts,
    /// What is remembered of each cell between two readings.
    pub(super) readers: BTreeMap<u64, Unwrapper>,
    /// Type and mount of each file system, as they were when it was met first.
    pub(super) systems: BTreeMap<u32, [String; 2]>,
}

/// The maps of the object.
pub(super) struct Maps {
    cells: PerCpuHashMap<MapData, u64, [u64; CELL_WORDS]>,
    errors: PerCpuHashMap<MapData, u64, u64>,
    cpus: PerCpuArray<MapData, [u64; CPU_WORDS]>,
    mounted: Mounted,
}

impl Maps {
    /// Those of loaded programs, with what the programs must find in them.
    ///
    /// # Errors
    /// When one is missing or of another kind, or the mounts cannot be read.
    pub fn new(take: &mut TakeMap<'_>) -> Result<Self> {
        let mut cells: PerCpuHashMap<_, u64, [u64; CELL_WORDS]> =
            take("CELLS")?.try_into().context("map CELLS")?;
        let cpus = aya::util::nr_cpus().map_err(|(_, error)| error)?;
        // What is counted where there is no room for another file system has its room from the start.
        for op in 0..OPS.len() as u16 {
            let empty = PerCpuValues::try_from(vec![[0; CELL_WORDS]; cpus])?;
            cells.insert(IoKey { device: 0, op, error: 0 }.word(), empty, 0)?;
        }
        Ok(Self {
            cells,
            errors: take("ERRORS")?.try_into().context("map ERRORS")?,
            cpus: take("IO_CPUS")?.try_into().context("map IO_CPUS")?,
            mounted: Mounted::new(take)?,
        })
    }
}

impl Io {
    /// What the job has done up to now, cumulative.
    ///
    /// # Errors
    /// When a map or the mounts cannot be read.
    pub fn read(&mut self) -> Result<Vec<Group>> {
        self.maps.mounted.update()?;
        let mut groups = Vec::new();
        for cell in self.maps.cells.iter() {
            let (word, cpus) = cell.context("cannot read the operations on files")?;
            let key = IoKey::of_word(word);
            let magic = cpus.iter().map(|cpu| cpu[MAGIC]).max().unwrap_or(0);
            let names = &mut self.names;
            let place =
                self.systems.entry(key.device).or_insert_with(|| place(key.device, magic, names));
            let mut group = Group::unknown(&IO, tags(place, key));
            let cpus: Vec<_> = cpus.iter().map(|cpu| bytes_of_words(&cpu[..])).collect();
            let reader = self.readers.entry(word).or_insert_with(|| Unwrapper::after(&IO, &[]));
            reader.read(&mut group, &cpus, cell_place);
            derive(&mut group);
            if !group.is_idle() {
                merge_all(&mut groups, &[group]);
            }
        }
        for error in self.maps.errors.iter() {
            let (word, cpus) = error.context("cannot read the errors of operations on files")?;
            let key = IoKey::of_word(word);
            let unknown = place(0, 0, &mut self.names);
            let mut all = tags(self.systems.get(&key.device).unwrap_or(&unknown), key);
            all.insert(0, errors::name_of(key.error));
            let mut group = Group::unknown(&IO_ERROR, all);
            group.set(IoError::ops, cpus.iter().sum::<u64>());
            merge_all(&mut groups, &[group]);
        }
        Ok(groups)
    }

    /// What is not in these numbers as it should be.
    pub fn notes(&self) -> Vec<String> {
        let Ok(cpus) = self.maps.cpus.get(&0, 0) else {
            return vec!["what the I/O figures lack is unknown: its map cannot be read".into()];
        };
        let sum = |at: usize| cpus.iter().map(|cpu| cpu[at / 8]).sum::<u64>();
        notes(
            sum(offset_of!(IoCpu, calls_32)),
            sum(offset_of!(IoCpu, no_cell)),
            sum(offset_of!(IoCpu, no_error)),
            sum(offset_of!(IoCpu, untimed)),
        )
    }
}

fn notes(calls_32: u64, no_cell: u64, no_error: u64, untimed: u64) -> Vec<String> {
    let all = [
        (calls_32, "system calls of 32-bit programs are missing from the I/O figures".to_owned()),
        (
            no_cell,
            format!(
                "operations on files have no mount in the I/O figures: there is room for \
                 {IO_CELLS} pairs of a file system and an operation"
            ),
        ),
        (no_error, "failed operations on files are missing from the list of errors".to_owned()),
        (untimed, "operations on files have no latency: their begin was not seen".to_owned()),
    ];
    let told = all.into_iter().filter(|(number, _)| *number > 0);
    told.map(|(number, what)| format!("{} {what}", count(number))).collect()
}

/// Type and mount of a file system, as they will be written.
fn place(device: u32, magic: u64, names: &mut Mounts) -> [String; 2] {
    let mount = names.get(device, magic);
    [mount.fs, tag::clean(&mount.path, tag::MAX_TAG_BYTES).unwrap_or_default()]
}

fn tags(place: &[String; 2], key: IoKey) -> Vec<String> {
    let op = OPS.get(usize::from(key.op)).copied().unwrap_or("unknown");
    vec![place[0].clone(), place[1].clone(), op.into()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracer_ebpf::tables::io::op;

    #[test]
    fn a_cell_is_named_by_its_mount_and_its_call() {
        let mut names = Mounts::of("40 22 0:60 / /a\\011b rw - nfs s:/ rw\n");
        let key = IoKey { device: 60, op: op::RENAME as u16, error: 0 };
        assert_eq!(tags(&place(60, 0, &mut names), key), ["nfs", "/a_b", "rename"]);
        let pipe = place(u32::MAX, 0x5049_5045, &mut names);
        assert_eq!(tags(&pipe, IoKey { op: op::READ as u16, ..key }), ["pipefs", "", "read"]);
        assert_eq!(place(0, 0, &mut names), ["unknown", ""]);
    }

    #[test]
    fn what_is_missing_is_told_in_whole_sentences() {
        assert!(notes(0, 0, 0, 0).is_empty());
        let told = notes(1200, 3, 4, 5);
        assert_eq!(
            told,
            [
                "1.20k system calls of 32-bit programs are missing from the I/O figures",
                "3 operations on files have no mount in the I/O figures: there is room for 256 \
                 pairs of a file system and an operation",
                "4 failed operations on files are missing from the list of errors",
                "5 operations on files have no latency: their begin was not seen",
            ]
        );
    }
}
