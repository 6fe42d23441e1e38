//! Noting what is seen, and telling of it where it is the first time.

use aya_ebpf::bindings::{BPF_NOEXIST, BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP};
use tracer_ebpf::{
    kernel_fields::{fields::*, globals},
    tables::{
        census::{NAME_BYTES, RING_BYTES, SightKey, Sighting, WOKEN_AT, kind, means},
        io_file::FileId,
    },
};

use crate::{
    file::word_at,
    job::Job,
    kernel::{Pointer, global, load},
    maps::{SIGHTINGS, SIGHTS},
    names::{Name, read_path, word},
    record::add_shared,
    task::Address,
};

/// EEXIST: another CPU was first.
const EXISTS: i64 = -17;

/// The file of inode `inode`.
#[inline(always)]
pub fn id_of<P: Pointer>(inode: P) -> FileId {
    FileId {
        device: load(load::<P, _>(inode, INODE_SUPER), SUPER_DEVICE),
        generation: load(inode, INODE_GENERATION),
        inode: load(inode, INODE_NUMBER),
    }
}

/// The same of the file that `dentry` names.
#[inline(always)]
pub fn id_of_dentry(dentry: u64) -> FileId {
    id_of(Address(word_at(dentry + global(&globals::DENTRY_INODE))))
}

/// A program.
#[derive(Clone, Copy)]
pub struct Program {
    pub id: FileId,
    /// Address of its entry in its folder.
    dentry: u64,
}

impl Program {
    /// That in `file`.
    #[inline(always)]
    pub fn in_file<P: Pointer>(file: P) -> Option<Self> {
        if file.address() == 0 {
            return None;
        }
        let id = id_of(load::<P, _>(file, FILE_INODE));
        Some(Self { id, dentry: load(file, FILE_DENTRY) })
    }

    /// That of `task`.
    #[inline(always)]
    pub fn of<P: Pointer>(task: P) -> Option<Self> {
        let memory: P = load(task, TASK_MM);
        if memory.address() == 0 {
            return None;
        }
        Self::in_file(load::<P, _>(memory, MM_EXECUTABLE))
    }

    /// Whether it is a Python interpreter, by its name.
    #[inline(always)]
    pub fn is_python(self) -> bool {
        let [first, _] = Name::of(self.dentry).first();
        first & 0xffff_ffff_ffff == word(b"python") || first & 0xffff_ffff == word(b"pypy")
    }

    #[inline(always)]
    fn key(self, job: Job) -> SightKey {
        let file = FileId { device: 0, generation: 0, inode: 0 };
        SightKey { lease: job.lease, kind: kind::PROGRAM, program: self.id, file, name: 0 }
    }

    /// It was executed.
    #[inline(always)]
    pub fn count(self, job: Job) {
        let key = self.key(job);
        if let Some(executions) = SIGHTS.get_ptr_mut(&key) {
            // SAFETY: in a map value.
            unsafe { add_shared(executions, 1) };
        } else if is_first(&key, 1, job) {
            tell(&key, self.dentry, 0, job);
        }
    }

    /// It did something, and may be there longer than anybody looks: its name is to be known.
    #[inline(always)]
    pub fn meet(self, job: Job) {
        let key = self.key(job);
        if is_first(&key, 0, job) {
            tell(&key, self.dentry, 0, job);
        }
    }
}

/// Whether `key` was not there: then it is, with `value`.
#[inline(always)]
pub fn is_first(key: &SightKey, value: u64, job: Job) -> bool {
    if SIGHTS.get_ptr(key).is_some() {
        return false;
    }
    match SIGHTS.insert(key, &value, BPF_NOEXIST.into()) {
        Ok(()) => true,
        Err(error) => {
            if i64::from(error) != EXISTS {
                job.lose();
            }
            false
        }
    }
}

/// In place of an entry: there is none, and the file was found in what a process had mapped. One argument more would be
/// more than a function has here.
pub const MAPPED: u64 = 1;

/// Tells of `key`, with the path of `dentry` and the name of `entry` (0: none; or [`MAPPED`]). Where there is no room it is
/// as if it had not been seen.
#[inline(never)]
pub fn tell(key: &SightKey, dentry: u64, entry: u64, job: Job) {
    let Some(mut place) = SIGHTINGS.reserve::<Sighting>(0) else {
        let _ = SIGHTS.remove(key);
        job.lose();
        return;
    };
    let sighting = place.as_mut_ptr();
    // SAFETY: this event's own.
    unsafe {
        (&raw mut (*sighting).key).write(*key);
        (&raw mut (*sighting).means).write(if entry == MAPPED {
            means::MAPPED
        } else {
            means::DONE
        });
    }
    let name = if entry <= MAPPED { [0; NAME_BYTES / 8] } else { Name::of(entry).read() };
    // SAFETY: likewise; as many words.
    unsafe { (&raw mut (*sighting).name).cast::<[u64; NAME_BYTES / 8]>().write(name) };
    read_path(dentry, sighting);
    // To wake somebody takes longer than all the rest.
    let is_much = SIGHTINGS.query(BPF_RB_AVAIL_DATA.into()) > u64::from(RING_BYTES) / WOKEN_AT;
    place.submit(if is_much { BPF_RB_FORCE_WAKEUP } else { BPF_RB_NO_WAKEUP }.into());
}
