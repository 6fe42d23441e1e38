//! Reads of a file's first page, on kernels that let nobody meet its opening: the dynamic linker reads a library's
//! header before it maps it, and Python reads modules. What is read past the page cache is not seen.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use tracer_ebpf::{
    kernel_fields::{fields::*, globals},
    tables::census::{NAME_BYTES, SightKey, kind},
};

use crate::{
    file::word_at,
    job::Job,
    kernel::{Kernel, global, load},
    modules,
    names::{Name, ends_in},
    sight::{Program, id_of, is_first, tell},
    task::Task,
};

/// Names of a file that are looked at: which of them was opened nobody tells, and package managers link files of their
/// caches into environments.
const ALIASES: usize = 4;

/// Pages of a file are looked for in the page cache, to be read.
#[btf_tracepoint(function = "mm_filemap_get_pages")]
pub fn census_read(ctx: BtfTracePointContext) -> i32 {
    if ctx.arg::<u64>(1) != 0 {
        return 0;
    }
    let task = Kernel::current();
    let Some(job) = Job::of(task) else { return 0 };
    let inode: Kernel = load(ctx.arg::<Kernel>(0), MAPPING_HOST);
    // The linker asks for less than a page; who copies or packs a library, for more.
    let (mut may_be_library, mut may_be_module) = (ctx.arg::<u64>(2) <= 1, true);
    let (mut alias, mut left) = (load::<u64, _>(inode, INODE_ALIASES), ALIASES);
    while alias != 0 && left > 0 {
        let dentry = alias - global(&globals::DENTRY_ALIAS);
        let name = Name::of(dentry);
        if may_be_module && modules::may_be(name) {
            may_be_module = !modules::seen(task, job, dentry);
        }
        if may_be_library && is_library(name) {
            library(task, job, inode, dentry);
            may_be_library = false;
        }
        alias = word_at(alias);
        left -= 1;
    }
    0
}

#[inline(never)]
fn library(task: Kernel, job: Job, inode: Kernel, dentry: u64) -> i32 {
    let Some(program) = Program::of(task) else { return 0 };
    let (lease, kind) = (job.lease, kind::LIBRARY);
    let key = SightKey { lease, kind, program: program.id, file: id_of(inode), name: 0 };
    if is_first(&key, 1, job) {
        program.meet(job);
        tell(&key, dentry, 0, job);
    }
    0
}

/// Whether that is a library's name: it has `.so` at its end or before a version.
#[inline(always)]
fn is_library(name: Name) -> bool {
    if ends_in(name.last(), b".so") {
        // However long it is.
        return true;
    }
    let words = name.read();
    let byte = |at: usize| (words[at / 8] >> (8 * (at % 8))) as u8;
    let mut at = 1;
    while at + 3 < NAME_BYTES {
        let is_here = byte(at) == b'.' && byte(at + 1) == b's' && byte(at + 2) == b'o';
        if is_here && (byte(at + 3) == 0 || byte(at + 3) == b'.') {
            return true;
        }
        at += 1;
    }
    false
}
