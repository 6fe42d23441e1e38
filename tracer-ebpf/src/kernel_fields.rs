//! Every kernel field the programs read, and how its offset reaches them.
//!
//! rustc emits no CO-RE relocations: the agent looks each path up in the running kernel's BTF before
//! loading. A load of a field is one instruction whose offset is a mark, which the agent replaces by the
//! field's own offset. What a program must know beside (whether this kernel has the field; which bit)
//! stands in the read-only global of the field's name: the verifier knows its value, and cuts code behind
//! a [`MISSING`] field.

/// Value of a global whose field this kernel lacks.
pub const MISSING: u64 = u64::MAX;

/// Offset that stands for that of the first field in [`ALL`], the next for the second's: in the programs
/// themselves no load has one that large.
pub const FIRST_MARK: i16 = 0x7000;

/// A kernel field.
#[derive(Clone, Copy, Debug)]
pub struct KernelField {
    /// Name of its global in the BPF object.
    pub global: &'static str,
    /// Path in the kernel's types, `task_struct.se.cfs_rq`: nested structs and anonymous unions are
    /// walked, pointers are not. Of several, separated by `|`, the first that this kernel has.
    pub path: &'static str,
}

/// Bit of a bit field as its global holds it: byte offset from bit 8 on, mask in the low byte.
pub const fn bit_global(bit_offset: u64) -> u64 {
    (bit_offset / 8) << 8 | 1 << (bit_offset % 8)
}

/// A field as the programs name it.
pub trait Marked {
    /// What stands for its offset in them.
    const MARK: i16;

    /// The global that holds its offset.
    #[cfg(target_arch = "bpf")]
    fn global() -> &'static u64;
}

/// The field of that mark.
#[derive(Clone, Copy, Debug)]
pub struct Field<const MARK: i16>;

macro_rules! kernel_fields {
    ($($global:ident = $path:literal),* $(,)?) => {
        /// All fields; each program names those it cannot do without.
        pub const ALL: &[KernelField] = &[$(KernelField { global: stringify!($global), path: $path }),*];

        /// The globals themselves: [`MISSING`], the offset, or of a bit field [`bit_global`].
        #[cfg(target_arch = "bpf")]
        #[allow(missing_docs, reason = "each is the offset of the path in the table")]
        pub mod globals {
            $(#[unsafe(no_mangle)] pub static $global: u64 = super::MISSING;)*
        }

        #[allow(non_camel_case_types, reason = "called as the fields are")]
        #[repr(i16)]
        enum Index {
            $($global),*
        }

        /// The fields, as the programs load them.
        #[allow(missing_docs, reason = "each is the path in the table")]
        pub mod fields {
            use super::{FIRST_MARK, Field, Index};

            $(pub const $global: Field<{ FIRST_MARK + Index::$global as i16 }> = Field;)*
        }

        $(impl Marked for Field<{ FIRST_MARK + Index::$global as i16 }> {
            const MARK: i16 = FIRST_MARK + Index::$global as i16;

            #[cfg(target_arch = "bpf")]
            #[inline(always)]
            fn global() -> &'static u64 {
                &globals::$global
            }
        })*
    };
}

kernel_fields! {
    TASK_PID = "task_struct.pid",
    TASK_ON_CPU = "task_struct.on_cpu",
    TASK_CPU = "task_struct.thread_info.cpu|task_struct.cpu",
    TASK_STATE = "task_struct.__state|task_struct.state",
    TASK_CGROUPS = "task_struct.cgroups",
    TASK_NVCSW = "task_struct.nvcsw",
    TASK_NIVCSW = "task_struct.nivcsw",
    TASK_MIN_FLT = "task_struct.min_flt",
    TASK_MAJ_FLT = "task_struct.maj_flt",
    TASK_IN_IOWAIT = "task_struct.in_iowait",
    TASK_IN_USER_FAULT = "task_struct.in_user_fault",
    TASK_SUM_EXEC = "task_struct.se.sum_exec_runtime",
    TASK_MIGRATIONS = "task_struct.se.nr_migrations",
    TASK_FROZEN = "task_struct.frozen",
    TASK_FLAGS = "task_struct.flags",
    TASK_COMPAT = "task_struct.thread_info.status|task_struct.thread_info.flags",
    TASK_STACK = "task_struct.stack",
    TASK_TGID = "task_struct.tgid",
    TASK_EXIT_CODE = "task_struct.exit_code",
    TASK_FILES = "task_struct.files",
    TASK_FS = "task_struct.fs",
    FS_CWD_DENTRY = "fs_struct.pwd.dentry",
    DENTRY_SUPER = "dentry.d_sb",
    CALL_NUMBER = "pt_regs.orig_ax|pt_regs.syscallno",
    CALL_FIRST = "pt_regs.di|pt_regs.orig_x0",
    // The agent adds the place of those after the first on 64-bit ARM, where they are an array.
    CALL_SECOND = "pt_regs.si|pt_regs.regs",
    CALL_THIRD = "pt_regs.dx|pt_regs.regs",
    CALL_FIFTH = "pt_regs.r8|pt_regs.regs",
    FILES_TABLE = "files_struct.fdt",
    FILES_MOST = "fdtable.max_fds",
    FILES_FILES = "fdtable.fd",
    FILE_INODE = "file.f_inode",
    INODE_MODE = "inode.i_mode",
    INODE_SUPER = "inode.i_sb",
    SUPER_DEVICE = "super_block.s_dev",
    SUPER_MAGIC = "super_block.s_magic",
    TASK_CFS_RQ = "task_struct.se.cfs_rq",
    TASK_RUN_DELAY = "task_struct.sched_info.run_delay",
    TASK_LAST_ARRIVAL = "task_struct.sched_info.last_arrival",
    TASK_LAST_QUEUED = "task_struct.sched_info.last_queued",
    TASK_PCOUNT = "task_struct.sched_info.pcount",
    CFS_RQ_RQ = "cfs_rq.rq",
    RQ_CLOCK = "rq.clock",
    CSS_SET_DFL_CGRP = "css_set.dfl_cgrp",
    // The agent adds the place of the tasks' controller.
    CSS_SET_SUBSYS = "css_set.subsys",
    CSS_CGROUP = "cgroup_subsys_state.cgroup",
    CGROUP_KN = "cgroup.kn",
    CGROUP_PARENT_CSS = "cgroup.self.parent",
    CGROUP_ROOT = "cgroup.root",
    // The agent adds the place of the memory controller.
    CGROUP_MEMORY = "cgroup.subsys",
    // The controller's state is what it begins with.
    MEMORY_PEAK = "mem_cgroup.memory.watermark",
    KERNFS_ID = "kernfs_node.id",
    ROOT_HIERARCHY = "cgroup_root.hierarchy_id",
    REQUEST_QUEUE = "request.q",
    REQUEST_DISK = "request.rq_disk",
    REQUEST_FLAGS = "request.cmd_flags",
    REQUEST_BIO = "request.bio",
    REQUEST_START = "request.start_time_ns",
    REQUEST_IO_START = "request.io_start_time_ns",
    REQUEST_BYTES_LEFT = "request.__data_len",
    QUEUE_DISK = "request_queue.disk",
    DISK_MAJOR = "gendisk.major",
    DISK_FIRST_MINOR = "gendisk.first_minor",
    BIO_BLKG = "bio.bi_blkg",
    BLKG_BLKCG = "blkcg_gq.blkcg",
    BLKCG_CGROUP = "blkcg.css.cgroup",
    SOCKET_SK = "socket.sk",
    SOCK_FAMILY = "sock.__sk_common.skc_family",
    SOCK_TYPE = "sock.sk_type",
    SOCK_PROTOCOL = "sock.sk_protocol",
    SOCK_CGROUP = "sock.sk_cgrp_data.cgroup",
    SKB_CONTROL = "sk_buff.cb",
    TCP_CONTROL_SEGMENTS = "tcp_skb_cb.tcp_gso_segs",
    CALL_FOURTH = "pt_regs.r10|pt_regs.regs",
    // Of calls of 32 bits; the third is the same.
    CALL_FIRST_32 = "pt_regs.bx|pt_regs.orig_x0",
    CALL_SECOND_32 = "pt_regs.cx|pt_regs.regs",
    CALL_FOURTH_32 = "pt_regs.si|pt_regs.regs",
    CALL_FIFTH_32 = "pt_regs.di|pt_regs.regs",
    FILE_POSITION = "file.f_pos",
    FILE_DENTRY = "file.f_path.dentry|file.__f_path.dentry",
    DENTRY_PARENT = "dentry.d_parent",
    DENTRY_NAME = "dentry.d_name.name|dentry.__d_name.name",
    INODE_NUMBER = "inode.i_ino",
    INODE_GENERATION = "inode.i_generation",
    INODE_SIZE = "inode.i_size",
    LIST_NEXT = "list_head.next",
    INODE_PIPE = "inode.i_pipe",
    PIPE_HEAD = "pipe_inode_info.head",
    PIPE_TAIL = "pipe_inode_info.tail",
    TASK_READ_BYTES = "task_struct.ioac.read_bytes",
    FOLIO_MAPPING = "folio.mapping",
    FOLIO_FLAGS = "folio.flags",
    FOLIO_PAGES = "folio._nr_pages|folio._folio_nr_pages",
    PAGE_MAPPING = "page.mapping",
    MAPPING_HOST = "address_space.host",
    URING_OPCODE = "io_kiocb.opcode",
    URING_FILE = "io_kiocb.file",
    URING_RESULT = "io_uring_cqe.res",
    FILE_MODE = "file.f_mode",
    FILE_FLAGS = "file.f_flags",
    BINARY_FILE = "linux_binprm.file",
    TASK_MM = "task_struct.mm",
    MM_EXECUTABLE = "mm_struct.exe_file",
    VMA_FLAGS = "vm_area_struct.vm_flags",
    VMA_FILE = "vm_area_struct.vm_file",
    INODE_ALIASES = "inode.i_dentry.first",
    DENTRY_ALIAS = "dentry.d_u.d_alias|dentry.d_alias",
    DENTRY_INODE = "dentry.d_inode",
    // Length in the upper half, and behind it the address of the name.
    DENTRY_LENGTH = "dentry.d_name.hash_len|dentry.__d_name.hash_len",
    CPUMASK_BITS = "cpumask.bits",
    MM_MAPPINGS = "mm_struct.map_count",
    MM_EXECUTABLE_PAGES = "mm_struct.exec_vm",
    SUPER_BLOCK_DEVICE = "super_block.s_bdev",
    BLOCK_DEVICE_DISK = "block_device.bd_disk",
    DISK_SEQUENCE = "gendisk.diskseq",
    SUPER_WRITEBACK = "super_block.s_bdi",
    WRITEBACK_ID = "backing_dev_info.id",
    SUPER_ROOT = "super_block.s_root",
    SUPER_MOUNTS = "super_block.s_mounts",
    MOUNT_IN_SUPER = "mount.mnt_instance",
    MOUNT_NEXT = "mount.mnt_next_for_sb|mount.mnt_instance",
    MOUNT_ID = "mount.mnt_id_unique",
}
