//! Python modules: files whose names end as theirs do, in a folder that interpreters look for them in.

use tracer_ebpf::tables::census::{SightKey, kind, means};

use crate::{
    job::Job,
    kernel::Pointer,
    names::{Name, digest, ends_in, parent, word},
    sight::{Program, Sight, id_of_dentry},
};

/// Folders above a module's file in which the one is looked for that has its topmost part.
const LEVELS: usize = 16;
const CACHE: &[u8] = b"__pycache__";

/// Whether a file of that name may be a module.
#[inline(always)]
pub fn may_be(name: Name) -> bool {
    let last = name.last();
    name.bytes > 3 && (ends_in(last, b".pyc") || ends_in(last, b".py") || ends_in(last, b".so"))
}

/// The file of `dentry`, whose name [`may_be`] a module's, was opened or read by `task` of `job`. Whether it is one.
#[inline(always)]
pub fn seen<P: Pointer>(task: P, job: Job, dentry: u64) -> bool {
    let Some(program) = Program::of(task) else { return false };
    if !program.is_python() {
        return false;
    }
    let (mut entry, mut below, mut level) = (dentry, dentry, 0);
    while level < LEVELS {
        let folder = parent(entry);
        if folder == entry || folder == 0 {
            return false;
        }
        if is_site(Name::of(folder)) {
            let name = Name::of(entry);
            let [first, second] = name.first();
            let is_cache = name.bytes == CACHE.len() as u64
                && first == word(b"__pycach")
                && second & 0xff_ffff == word(b"e__");
            note(program, job, folder, if is_cache { below } else { entry });
            return true;
        }
        below = entry;
        entry = folder;
        level += 1;
    }
    false
}

/// Whether modules are looked for in folders of that name: `site-packages`, `dist-packages`, `python3.11`.
#[inline(always)]
fn is_site(name: Name) -> bool {
    let [first, second] = name.first();
    if name.bytes == 13 {
        let is_either = first == word(b"site-pac") || first == word(b"dist-pac");
        return is_either && second & 0xff_ffff_ffff == word(b"kages");
    }
    let is_python = first & 0xffff_ffff_ffff == word(b"python");
    is_python && name.bytes > 8 && name.bytes < 13 && first >> 56 == b'.'.into()
}

#[inline(always)]
fn note(program: Program, job: Job, site: u64, entry: u64) {
    let name = digest(Name::of(entry));
    let key = SightKey {
        lease: job.lease,
        kind: kind::MODULE,
        program: program.id,
        file: id_of_dentry(site),
        name,
    };
    Sight { key, dentry: site, entry, means: means::DONE, job }.note(program);
}
