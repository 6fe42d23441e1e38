//! What the kernel tells, as it comes out of the ring.

use std::mem::offset_of;

use tracer_ebpf::tables::{
    census::{SightKey, Sighting, means},
    io_file::FileId,
};

/// A first sighting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Of what.
    pub key: SightKey,
    /// Whether it was found in what a process had mapped, and not seen before.
    pub is_mapped: bool,
    /// A module's name; else empty.
    pub name: String,
    /// The path within the file system; `None` where not all of it is known.
    pub inner: Option<String>,
}

/// Reads one; `None` of what is none.
pub fn parse(bytes: &[u8]) -> Option<Event> {
    if bytes.len() < size_of::<Sighting>() {
        return None;
    }
    let short = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let file = |at: usize| {
        Some(FileId {
            device: word(at + offset_of!(FileId, device))?,
            generation: word(at + offset_of!(FileId, generation))?,
            inode: long(at + offset_of!(FileId, inode))?,
        })
    };
    let key = SightKey {
        lease: word(offset_of!(SightKey, lease))?,
        kind: word(offset_of!(SightKey, kind))?,
        program: file(offset_of!(SightKey, program))?,
        file: file(offset_of!(SightKey, file))?,
        name: long(offset_of!(SightKey, name))?,
    };
    let name = &bytes[offset_of!(Sighting, name)..offset_of!(Sighting, path)];
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let length = short(offset_of!(Sighting, path_bytes))?.into();
    let path = bytes.get(offset_of!(Sighting, path)..)?;
    let is_whole = word(offset_of!(Sighting, is_whole))? != 0;
    Some(Event {
        key,
        is_mapped: short(offset_of!(Sighting, means))? == means::MAPPED,
        name: String::from_utf8_lossy(name).into_owned(),
        inner: is_whole.then(|| joined(&path[..path.len().min(length)])),
    })
}

/// The path of parts that end in zeros, the last one first.
fn joined(parts: &[u8]) -> String {
    let parts = parts.strip_suffix(&[0]).unwrap_or(parts);
    let parts: Vec<_> = parts.rsplit(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use tracer_ebpf::tables::census::{NAME_BYTES, PART_BYTES, PATH_BYTES, kind};

    use super::*;

    #[test]
    fn a_sighting_is_read_as_it_lies_in_the_ring() {
        let file = |inode| FileId { device: 3, generation: 4, inode };
        let (program, site) = (file(5), file(6));
        let key = SightKey { lease: 1, kind: kind::MODULE, program, file: site, name: 7 };
        let mut sighting = Sighting {
            key,
            path_bytes: 22,
            means: means::MAPPED,
            is_whole: 1,
            name: [0; NAME_BYTES],
            path: [1; PATH_BYTES + PART_BYTES],
        };
        sighting.name[..5].copy_from_slice(b"numpy");
        sighting.path[..22].copy_from_slice(b"site-packages\0lib\0usr\0");
        let bytes = |sighting: &Sighting| {
            // SAFETY: integers without padding.
            unsafe {
                std::slice::from_raw_parts(
                    std::ptr::from_ref(sighting).cast::<u8>(),
                    size_of::<Sighting>(),
                )
            }
            .to_vec()
        };
        let whole = bytes(&sighting);
        let read = parse(&whole).unwrap();
        assert_eq!((read.key, read.name.as_str(), read.is_mapped), (key, "numpy", true));
        assert_eq!(read.inner.as_deref(), Some("/usr/lib/site-packages"));
        assert_eq!(parse(&whole[..whole.len() - 1]), None);
        // One of 64 bytes, and a path of which the beginning found no room.
        sighting.name = [b'x'; NAME_BYTES];
        sighting.is_whole = 0;
        let read = parse(&bytes(&sighting)).unwrap();
        assert_eq!((read.name.len(), read.inner), (64, None));
    }
}
