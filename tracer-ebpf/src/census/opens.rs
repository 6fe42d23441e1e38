//! Files that are opened or mapped to be executed, where the kernel lets programs meet the functions that decide whether
//! they may be.

use aya_ebpf::{EbpfContext, macros::fentry, programs::FEntryContext};
use tracer_ebpf::{kernel_fields::fields::*, tables::census::means};

use crate::{
    job::Job,
    kernel::{Kernel, load},
    modules,
    names::Name,
    sight::{Program, id_of, library},
    task::{Address, Task},
};

/// PROT_EXEC (asm-generic/mman-common.h).
const EXECUTABLE: u64 = 4;
/// FMODE_BACKING (linux/fs.h): a file that a file system of layers opened in place of its own (6.5 on).
const BACKING: u32 = 1 << 25;

macro_rules! programs {
    ($($(#[$doc:meta])* $name:ident($ctx:ident, $task:ty) of $function:literal = $body:expr;)*) => {
        $($(#[$doc])*
        #[fentry(function = $function)]
        pub fn $name($ctx: FEntryContext) -> i32 {
            $body
        })*
    };
}

programs! {
    /// A file is mapped.
    census_map(ctx, Kernel) of "security_mmap_file" = mapped::<Kernel>(ctx);
    /// The same on kernels without a helper for the typed current task (before 5.11).
    census_map_probed(ctx, Address) of "security_mmap_file" = mapped::<Address>(ctx);
    /// A file is opened.
    census_open(ctx, Kernel) of "security_file_open" = opened::<Kernel>(ctx);
    /// The same on kernels without that helper.
    census_open_probed(ctx, Address) of "security_file_open" = opened::<Address>(ctx);
}

#[inline(always)]
fn mapped<T: Task>(ctx: impl EbpfContext) -> i32 {
    let ctx = FEntryContext::new(ctx.as_ptr());
    let file: Kernel = ctx.arg(0);
    if ctx.arg::<u64>(1) & EXECUTABLE == 0 || file.is_null() {
        return 0;
    }
    let task = T::current();
    let Some(job) = Job::of(task) else { return 0 };
    let Some(program) = Program::of(task) else { return 0 };
    let id = id_of(load::<Kernel, _>(file, FILE_INODE));
    // The kernel maps the program itself as it executes it.
    if id == program.id {
        return 0;
    }
    library(program, job, id, load(file, FILE_DENTRY), means::DONE);
    0
}

#[inline(always)]
fn opened<T: Task>(ctx: impl EbpfContext) -> i32 {
    let ctx = FEntryContext::new(ctx.as_ptr());
    let task = T::current();
    let Some(job) = Job::of(task) else { return 0 };
    let file: Kernel = ctx.arg(0);
    let dentry: Kernel = load(file, FILE_DENTRY);
    if !modules::may_be(Name::of(dentry as u64)) {
        return 0;
    }
    // A layer's file that is opened for one that was opened already: before 6.7 it bears the other's name.
    let inode: Kernel = load(file, FILE_INODE);
    let is_layers = load::<u64, _>(dentry, DENTRY_SUPER) != load::<u64, _>(inode, INODE_SUPER);
    if is_layers || load::<u32, _>(file, FILE_MODE) & BACKING != 0 {
        return 0;
    }
    modules::seen(task, job, dentry as u64);
    0
}
