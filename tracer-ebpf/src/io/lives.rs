//! Files of systems that number no generations of an inode: overlays, images, most of FUSE, NFS. Which of those that had a
//! number one is, is told by its file system and by when the open was that made it, as far as it was seen.

use tracer_ebpf::{
    kernel_fields::{fields::*, globals},
    settings::globals::INODE_BYTES,
    tables::io_file::FileId,
};

use crate::{
    files::File,
    inode::Inode,
    instance,
    kernel::global,
    maps::LIVES,
    typed::{self, word_at},
};

/// In a file's mode: its open made it (linux/fs.h).
const CREATED: u32 = 1 << 20;
/// In its flags: the same, of one that has no name (asm-generic/fcntl.h).
const NAMELESS: u32 = 0o20_000_000;

/// Magic number of overlays (linux/magic.h).
const OVERLAY: u64 = 0x794c_7630;

/// What `inode` of file system `device` is called by.
#[inline(always)]
pub fn id_of(inode: &Inode, device: u32) -> FileId {
    let id = FileId { device, generation: inode.generation(), inode: inode.number() };
    // Without a number is what is no file.
    if id.generation != 0 || id.inode == 0 {
        return id;
    }
    FileId { generation: life(inode.system(), inode.address(), device, id.inode) as u32, ..id }
}

/// Notes that the open of `file` ended at `now_ns`, where it made it.
#[inline(always)]
pub fn note_opened(file: &mut File, now_ns: u64) {
    // Some say of any open with O_CREAT that it made the file (NFS 3): one with contents was there.
    if file.address == 0 || file.size_bytes != 0 {
        return;
    }
    let open = typed::file(file.address);
    let Some(inode) = Inode::at(open.field::<u64, _>(FILE_INODE)) else { return };
    if inode.generation() != 0 {
        return;
    }
    let is_made = open.field::<u32, _>(FILE_MODE) as u32 & CREATED != 0
        || open.field::<u32, _>(FILE_FLAGS) as u32 & NAMELESS != 0;
    if is_made {
        file.id.generation = begin(inode.system(), file.id.device, file.id.inode, now_ns) as u32;
    }
}

/// What the file of this number is called by, whose inode is at `address` and its file system at `system`: its life, or where
/// its begin was not seen, the file system itself.
#[inline(never)]
fn life(system: u64, address: u64, device: u32, inode: u64) -> u64 {
    let number = FileId { device, generation: instance::of(system) as u32, inode };
    if is_of_lower_layer(system, address) {
        return number.generation.into();
    }
    // SAFETY: a word, which is written as a whole.
    unsafe { LIVES.get(&number) }.copied().unwrap_or(number.generation).into()
}

/// Whether it is a file of an overlay of which the upper layer has none: one that was not made there, and may have the
/// number of one that was, where the layers are on two file systems.
#[inline(always)]
fn is_of_lower_layer(system: u64, address: u64) -> bool {
    let bytes = global(&INODE_BYTES);
    // What is in the upper layer stands behind the inode (fs/overlayfs/ovl_entry.h).
    bytes != 0
        && word_at(system + global(&globals::SUPER_MAGIC)) == OVERLAY
        && word_at(address + bytes) == 0
}

/// Begins a new life of this number, and gives it: in units of 1,024 ns, odd, and no other's within an hour.
#[inline(never)]
fn begin(system: u64, device: u32, inode: u64, now_ns: u64) -> u64 {
    let number = FileId { device, generation: instance::of(system) as u32, inode };
    let life = (now_ns >> 10) as u32 | 1;
    let _ = LIVES.insert(&number, &life, 0);
    life.into()
}
