//! Noting what is seen, and telling of it where it is the first time.

use aya_ebpf::bindings::{
    BPF_NOEXIST, BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP, BPF_RB_RING_SIZE,
};
use tracer_ebpf::{
    kernel_fields::{fields::*, globals},
    settings::globals::CAST_TO_INODE,
    tables::{
        census::{NAME_BYTES, SightKey, Sighting, WOKEN_AT, kind, means},
        io_file::FileId,
    },
};

use crate::{
    instance,
    job::Job,
    kernel::{Pointer, global, load},
    maps::{SIGHTINGS, SIGHTS},
    names::{Name, read_path, word},
    record::add_shared,
    typed::{Typed, device_of, word_at},
};

/// EEXIST: another CPU was first.
const EXISTS: i64 = -17;

/// The file of inode `inode`.
#[inline(always)]
pub fn id_of<P: Pointer>(inode: P) -> FileId {
    let system: P = load(inode, INODE_SUPER);
    let id = FileId {
        device: load(system, SUPER_DEVICE),
        generation: load(inode, INODE_GENERATION),
        inode: load(inode, INODE_NUMBER),
    };
    of_its_system(id, system.address())
}

/// The same of the file that `dentry` names.
#[inline(always)]
pub fn id_of_dentry(dentry: u64) -> FileId {
    let inode = word_at(dentry + global(&globals::DENTRY_INODE));
    let inode = Typed::at(inode, &CAST_TO_INODE);
    let system = inode.field::<u64, _>(INODE_SUPER);
    let id = FileId {
        device: device_of(system),
        generation: inode.field::<u32, _>(INODE_GENERATION) as u32,
        inode: inode.field::<u64, _>(INODE_NUMBER),
    };
    of_its_system(id, system)
}

/// `id` of a file on the file system at `system`: where inodes have no generation there, another's than that of the next
/// file system with this device.
#[inline(always)]
fn of_its_system(id: FileId, system: u64) -> FileId {
    if id.generation != 0 { id } else { FileId { generation: instance::of(system) as u32, ..id } }
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
    fn sight(self, job: Job) -> Sight {
        let file = FileId { device: 0, generation: 0, inode: 0 };
        let key =
            SightKey { lease: job.lease, kind: kind::PROGRAM, program: self.id, file, name: 0 };
        Sight { key, dentry: self.dentry, entry: 0, means: means::DONE, job }
    }

    /// It was executed.
    #[inline(always)]
    pub fn count(self, job: Job) {
        let sight = self.sight(job);
        if let Some(executions) = SIGHTS.get_ptr_mut(&sight.key) {
            // SAFETY: in a map value.
            unsafe { add_shared(executions, 1) };
        } else if is_first(&sight.key, 1, job) {
            tell(&sight);
        }
    }

    /// It did something, and may be there longer than anybody looks: its name is to be known.
    #[inline(always)]
    pub fn meet(self, job: Job) {
        let sight = self.sight(job);
        if SIGHTS.get_ptr(&sight.key).is_none() && is_first(&sight.key, 0, job) {
            tell(&sight);
        }
    }
}

/// Puts `key` there with `value`. Whether it was not there.
#[inline(always)]
fn is_first(key: &SightKey, value: u64, job: Job) -> bool {
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

/// `program` of `job` has the file `id` of `dentry` as a library: whether that was known.
#[inline(always)]
pub fn library(program: Program, job: Job, id: FileId, dentry: u64, means: u16) -> bool {
    let key =
        SightKey { lease: job.lease, kind: kind::LIBRARY, program: program.id, file: id, name: 0 };
    Sight { key, dentry, entry: 0, means, job }.note(program)
}

/// What is told of something the first time.
pub struct Sight {
    pub key: SightKey,
    /// Address of the entry whose path is told.
    pub dentry: u64,
    /// That of the entry whose name is told besides; 0: none.
    pub entry: u64,
    /// By what it was seen.
    pub means: u16,
    pub job: Job,
}

impl Sight {
    /// It was seen of `program`, which is to be known too. Whether it was known.
    #[inline(always)]
    pub fn note(&self, program: Program) -> bool {
        let is_known = SIGHTS.get_ptr(&self.key).is_some();
        if !is_known && is_first(&self.key, 1, self.job) {
            program.meet(self.job);
            tell(self);
        }
        is_known
    }
}

/// Tells of it. Where there is no room it is as if it had not been seen.
#[inline(never)]
fn tell(sight: &Sight) {
    let Some(mut place) = SIGHTINGS.reserve::<Sighting>(0) else {
        let _ = SIGHTS.remove(&sight.key);
        sight.job.lose();
        return;
    };
    let sighting = place.as_mut_ptr();
    let name = if sight.entry == 0 { [0; NAME_BYTES / 8] } else { Name::of(sight.entry).read() };
    // SAFETY: this event's own; as many words.
    unsafe {
        (&raw mut (*sighting).key).write(sight.key);
        (&raw mut (*sighting).means).write(sight.means);
        (&raw mut (*sighting).name).cast::<[u64; NAME_BYTES / 8]>().write(name);
    }
    read_path(sight.dentry, sighting);
    // To wake somebody takes longer than all the rest.
    let ring_bytes = SIGHTINGS.query(BPF_RB_RING_SIZE.into());
    let is_much = SIGHTINGS.query(BPF_RB_AVAIL_DATA.into()) > ring_bytes / WOKEN_AT;
    place.submit(if is_much { BPF_RB_FORCE_WAKEUP } else { BPF_RB_NO_WAKEUP }.into());
}
