//! Reads of a file's first page, on kernels that let nobody meet its opening: the dynamic linker reads a library's
//! header before it maps it, and Python reads modules. What is read past the page cache is not seen.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use tracer_ebpf::{
    kernel_fields::{fields::*, globals},
    tables::census::{NAME_BYTES, means},
};

use crate::{
    job::Job,
    kernel::{Kernel, global, load},
    modules,
    names::{Name, ends_in, word},
    sight::{self, Program, id_of},
    task::Task,
    typed::word_at,
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
    sight::library(program, job, id_of(inode), dentry, means::DONE);
    0
}

/// Whether that is a library's name: it has `.so` at its end or before a version.
#[inline(always)]
fn is_library(name: Name) -> bool {
    if ends_in(name.last(), b".so") {
        // However long it is.
        return true;
    }
    let (mut at, mut here) = (0, word_at(name.address));
    while at < NAME_BYTES as u64 && at + 4 <= name.bytes {
        let next = word_at(name.address + at + 8);
        if has_dot(here) {
            let mut byte = 0;
            while byte < 8 {
                let behind = if byte == 0 { 0 } else { next << (64 - 8 * byte) };
                let is_here = (here >> (8 * byte) | behind) & 0xffff_ffff == word(b".so.");
                // What is behind the name is anything.
                if is_here && at + byte > 0 && at + byte + 4 <= name.bytes {
                    return true;
                }
                byte += 1;
            }
        }
        here = next;
        at += 8;
    }
    false
}

/// Whether one of the bytes of `word` is a dot: a zero, were each byte less by one.
#[inline(always)]
const fn has_dot(word: u64) -> bool {
    let zeros = word ^ 0x2e2e_2e2e_2e2e_2e2e;
    zeros.wrapping_sub(0x0101_0101_0101_0101) & !zeros & 0x8080_8080_8080_8080 != 0
}
