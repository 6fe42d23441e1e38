//! What threads did to files, as it lies in the maps.

use std::{collections::HashMap, os::fd::AsFd};

use anyhow::{Context, Result, bail};
use aya::maps::{HashMap as Table, Map, MapData};
use tracer_ebpf::tables::io_file::{FileCell, FileId, FileKey, FileName, HEAVY_FILES, LIGHT_FILES};

use super::known::Known;
use crate::bpf::{batch::elements, maps::TakeMap};

/// So many new cells since a reading, and it is time for the next.
const FILLING: u64 = LIGHT_FILES as u64 / 4;
/// So many, and their names are taken all at once: one by one the last would be driven out before they are asked for.
const MANY: u64 = 256;
/// Words of a file's name.
const NAME_WORDS: usize = size_of::<FileName>() / 8;

/// Said of errors.
const NAMES: &str = "map of names";

type Name = [u64; NAME_WORDS];
type Names<'a> = Table<&'a MapData, [u64; 2], Name>;

/// The maps, and what was read of them.
pub struct Files {
    cells: [(MapData, u32); 2],
    /// Of files with which much is done, and of all others.
    names: [Map; 2],
    /// Cells that had been made before the last reading.
    read_at: u64,
    pub known: Known,
}

impl Files {
    /// Of loaded programs.
    ///
    /// # Errors
    /// When a map is missing or of another kind.
    pub fn new(take: &mut TakeMap<'_>) -> Result<Self> {
        let mut cells = |name: &str| match take(name)? {
            Map::LruHashMap(map) => Ok(map),
            _ => bail!("map {name} is of another kind"),
        };
        // What goes over from the first to the second while both are read is then in the second.
        let cells = [(cells("LIGHT")?, LIGHT_FILES), (cells("HEAVY")?, HEAVY_FILES)];
        let names = [take("HEAVY_NAMES")?, take("NAMES")?];
        Ok(Self { cells, names, read_at: 0, known: Known::default() })
    }

    /// Whether the tables may be full before long, where `cells_made` were made so far.
    pub fn is_filling(&self, cells_made: u64) -> bool {
        cells_made.saturating_sub(self.read_at) > FILLING
    }

    /// Takes what was done since the last reading, before which the programs had filed `filed` operations and made
    /// `cells_made` cells.
    ///
    /// # Errors
    /// When a map cannot be read.
    pub fn read(&mut self, filed: u64, cells_made: u64) -> Result<()> {
        let are_many = cells_made.saturating_sub(self.read_at) > MANY;
        self.read_at = cells_made;
        // Before the cells: what comes meanwhile is asked for by itself.
        let listed = if are_many { self.list_names()? } else { HashMap::new() };
        let mut all = Vec::new();
        for (map, most) in &self.cells {
            // SAFETY: the map's own types, integers without padding.
            let read = unsafe { elements::<FileKey, FileCell>(map.fd().as_fd(), *most as usize) };
            all.extend(read.context("cannot read the files that the job used")?);
        }
        let names: Vec<Names<'_>> =
            self.names.iter().map(TryFrom::try_from).collect::<Result<_, _>>().context(NAMES)?;
        self.known.take(filed, all, |file| {
            let words = file.words();
            let listed = listed.get(&words).copied();
            let asked = || names.iter().find_map(|map| map.get(&words, 0).ok());
            Some(name_of(listed.or_else(asked)?))
        });
        Ok(())
    }

    /// The names of files with which little was done.
    fn list_names(&self) -> Result<HashMap<[u64; 2], Name>> {
        let [_, Map::LruHashMap(names)] = &self.names else { bail!("{NAMES} is of another kind") };
        // SAFETY: as large as the map's own types, integers without padding.
        let names = unsafe { elements(names.fd().as_fd(), LIGHT_FILES as usize) };
        Ok(names.context(NAMES)?.into_iter().collect())
    }
}

/// The name that words of memory hold.
fn name_of(words: [u64; NAME_WORDS]) -> FileName {
    // SAFETY: as large, and integers.
    unsafe { std::mem::transmute::<[u64; NAME_WORDS], FileName>(words) }
}

/// The path of `file` within its file system, `…/` before it where not all of it is known.
pub fn path_of(file: FileId, name: Option<&FileName>) -> String {
    let Some(name) = name.filter(|name| name.length > 0) else {
        return format!("…/inode {}", file.inode);
    };
    let kept = &name.bytes[..name.bytes.len().min(name.length as usize)];
    // The last part is whole if its zero is there.
    let whole = kept.iter().rposition(|byte| *byte == 0).unwrap_or(0);
    let mut parts: Vec<_> =
        kept[..whole].split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    parts.reverse();
    match parts.first().map(|part| &**part) {
        Some("/") => format!("/{}", parts[1..].join("/")),
        // As long as there is room for: its end is cut off.
        Some(part) if parts.len() == 1 && whole + 1 == name.bytes.len() => format!("…/{part}…"),
        // What was never in a folder.
        Some(_) if parts.len() == 1 && whole + 1 == name.length as usize => parts.join(""),
        _ => format!("…/{}", parts.join("/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_put_together_from_their_ends() {
        let file = FileId { device: 1, generation: 1, inode: 77 };
        let of = |parts: &[u8], length: Option<u32>| {
            let mut name =
                FileName { length: length.unwrap_or(parts.len() as u32), bytes: [1; 252] };
            name.bytes[..parts.len()].copy_from_slice(parts);
            path_of(file, Some(&name))
        };
        assert_eq!(of(b"b.txt\0data\0srv\0/\0", None), "/srv/data/b.txt");
        assert_eq!(of(b"/\0", None), "/");
        assert_eq!(of(b"memfd:x\0", None), "memfd:x");
        assert_eq!(of(b"b\0data\0", None), "…/data/b", "more levels than are followed");
        assert_eq!(of(b"a\xffb\0/\0", None), "/a\u{fffd}b");
        let long = [&b"b\0data\0"[..], &[b'x'; 245]].concat();
        assert_eq!(of(&long, Some(400)), "…/data/b", "a part that found no room");
        assert_eq!(path_of(file, None), "…/inode 77");
        // A name of 255 bytes.
        let mut long = [b'x'; 252];
        long[251] = 0;
        assert_eq!(of(&long, None), format!("…/{}…", "x".repeat(251)));
    }
}
