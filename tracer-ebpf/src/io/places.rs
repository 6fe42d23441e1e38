//! Which file system an operation is on.

use aya_ebpf::helpers::{bpf_probe_read_user, generated::bpf_probe_read_user_str};
use tracer_ebpf::{
    io_calls::{IoCall, ends_for_pipe, fails_for_target, place},
    kernel_fields::{fields::*, globals},
    tables::{in_flight::InFlight, io::IO_PATH_BYTES},
};

use crate::{
    arguments::{AT_FDCWD, Arguments},
    file::word_at,
    files::File,
    inode::Inode,
    kernel::{Pointer, global, has, load},
    maps::{DEVICES, MOUNTS, cpu, mounts_changed, path},
    typed::{device_of, file, file_of_descriptor},
};

/// Where `struct statx` has the numbers of the device (linux/stat.h); `struct stat` begins with them.
const STATX_DEVICE: u64 = 136;

/// A file system.
#[derive(Clone, Copy)]
pub struct System {
    /// As the kernel numbers it; 0 where it is unknown.
    pub device: u32,
    /// Address of its super block; 0 where only the number is known.
    pub block: u64,
}

/// A file system, and the open file that the call is on, where it has one.
pub struct Place {
    /// The file system.
    pub system: System,
    /// The file.
    pub file: File,
}

impl System {
    /// One that is unknown.
    pub const UNKNOWN: Self = Self { device: 0, block: 0 };

    /// That of the open file at `address`; 0 is none.
    #[inline(always)]
    pub fn of_file(address: u64) -> Self {
        if address == 0 {
            return Self::UNKNOWN;
        }
        let Some(inode) = Inode::at(file(address).field::<u64, _>(FILE_INODE)) else {
            return Self::UNKNOWN;
        };
        let block = inode.system();
        Self { device: device_of(block), block }
    }

    /// That of `call` with a path.
    #[inline(always)]
    fn of_named<P: Pointer>(task: P, arguments: Arguments, call: IoCall, result: i64) -> Self {
        let told = match call.place() {
            place::STAT | place::STATX if result == 0 => told(arguments, call),
            _ => 0,
        };
        if told != 0 {
            return Self { device: told, block: 0 };
        }
        let (name, folder) = arguments.path();
        match by_path(name) {
            Named::Mounted(device) => Self { device, block: 0 },
            Named::Nowhere => Self::UNKNOWN,
            Named::Below if folder == AT_FDCWD => {
                let directory: P = load(load::<P, _>(task, TASK_FS), FS_CWD_DENTRY);
                let block: P = load(directory, DENTRY_SUPER);
                Self { device: load(block, SUPER_DEVICE), block: block.address() }
            }
            Named::Below => Place::of_descriptor(task, folder).system,
        }
    }

    /// Its magic number; 0 where that is unknown.
    #[inline(always)]
    pub fn magic(self) -> u64 {
        if self.block == 0 { 0 } else { word_at(self.block + global(&globals::SUPER_MAGIC)) }
    }
}

impl Place {
    /// One that is unknown.
    pub const UNKNOWN: Self = Self { system: System::UNKNOWN, file: File::none(0) };

    /// That of the file that `task` has as `descriptor`.
    #[inline(always)]
    pub fn of_descriptor(task: impl Pointer, descriptor: u32) -> Self {
        Self::of_file(file_of_descriptor(task, descriptor))
    }

    /// That of the open file at `address`; 0 is none.
    #[inline(always)]
    pub fn of_file(address: u64) -> Self {
        if address == 0 {
            return Self::UNKNOWN;
        }
        let inode = file(address).field::<u64, _>(FILE_INODE);
        let Some(inode) = Inode::at(inode) else { return Self::UNKNOWN };
        let block = inode.system();
        let device = device_of(block);
        let file = File::of(address, &inode, device);
        Self { system: System { device: file.id.device, block }, file }
    }

    /// What a call that has begun so closes.
    #[inline(always)]
    pub fn closed_by(begun: &InFlight) -> Self {
        Self {
            system: System { device: begun.file.device, block: begun.system },
            file: File { address: 0, id: begun.file, size_bytes: 0 },
        }
    }

    /// That of `call` of `task` with these arguments, which returned `result`.
    #[inline(always)]
    pub fn of_call(task: impl Pointer, arguments: Arguments, call: IoCall, result: i64) -> Self {
        let descriptor = match call.place() {
            place::FIRST if call.is_of_target() => arguments.third() as u32,
            place::FIRST => arguments.first() as u32,
            place::SECOND if call.is_of_target() => arguments.first() as u32,
            place::SECOND => arguments.second() as u32,
            place::OPENED if result >= 0 => result as u32,
            place::UNKNOWN => return Self::UNKNOWN,
            _ => {
                let system = System::of_named(task, arguments, call, result);
                return Self { system, file: File::none(0) };
            }
        };
        Self::of_descriptor(task, descriptor)
    }
}

/// `call` of `task` with these arguments, which returned `result`: of a copy, told of which of its files it is.
#[inline(always)]
pub fn directed(task: impl Pointer, arguments: Arguments, call: IoCall, result: i64) -> IoCall {
    if !call.is_copy() {
        return call;
    }
    let is_out_of_pipe = call.may_be_out_of_pipe() && pipe(task, arguments.first() as u32) != 0;
    let is_of_target =
        if is_out_of_pipe { !ends_for_pipe(result) } else { fails_for_target(result) };
    if is_of_target { call.of_target() } else { call }
}

/// Whether `call` of `task` with these arguments begins with waiting until somebody writes to a pipe, which is no time of
/// the file that it writes.
#[inline(always)]
pub fn awaits_writer(task: impl Pointer, arguments: Arguments, call: IoCall) -> bool {
    let is_known =
        has(&globals::INODE_PIPE) && has(&globals::PIPE_HEAD) && has(&globals::PIPE_TAIL);
    if !call.may_be_out_of_pipe() || !is_known {
        return false;
    }
    let inode = pipe(task, arguments.first() as u32);
    let pipe = word_at(inode + global(&globals::INODE_PIPE));
    let at = |global_of| word_at(pipe + global(global_of)) as u32;
    inode != 0 && at(&globals::PIPE_HEAD) == at(&globals::PIPE_TAIL)
}

/// Address of the inode of the pipe that `task` has as `descriptor`; 0 where that is none.
#[inline(never)]
fn pipe<P: Pointer>(task: P, descriptor: u32) -> u64 {
    let open = file_of_descriptor(task, descriptor);
    if open == 0 {
        return 0;
    }
    let address = file(open).field::<u64, _>(FILE_INODE);
    match Inode::at(address) {
        Some(inode) if inode.is_pipe() => address,
        _ => 0,
    }
}

/// What a path says of the file system.
enum Named {
    /// It is below where this one is mounted, unless a link leads elsewhere.
    Mounted(u32),
    /// It begins at a folder.
    Below,
    /// Nothing: it cannot be read, or nothing is known to be mounted there.
    Nowhere,
}

#[inline(always)]
fn by_path(name: u64) -> Named {
    if name == 0 {
        // The folder's descriptor is the file itself (futimens).
        return Named::Below;
    }
    let Some(path) = path() else { return Named::Nowhere };
    // SAFETY: this CPU's own; the path is read with all faults caught, to where there is room for so much.
    unsafe {
        let bytes = &raw mut (*path).data;
        let read = bpf_probe_read_user_str(bytes.cast(), IO_PATH_BYTES as u32, name as *const _);
        if read <= 0 {
            return Named::Nowhere;
        }
        if *bytes.cast::<u8>() != b'/' {
            return Named::Below;
        }
        (*path).prefix_len = 8 * read as u32;
        match MOUNTS.get(&*path) {
            Some(device) => Named::Mounted(*device),
            None => Named::Nowhere,
        }
    }
}

/// The file system that the call has told its caller, where that is one that is mounted: those of overlays and
/// of btrfs's parts have numbers of their own.
#[inline(always)]
fn told(arguments: Arguments, call: IoCall) -> u32 {
    let device = if call.place() == place::STATX {
        let [major, minor]: [u32; 2] = user(arguments.fifth() + STATX_DEVICE);
        major << 20 | minor
    } else {
        let [low, _]: [u32; 2] =
            if call.is_at() { user(arguments.third()) } else { user(arguments.second()) };
        // As the kernel packs it for programs (`new_encode_dev`).
        (low & 0xf_ff00) << 12 | low & 0xff | low >> 12 & 0xf_ff00
    };
    if is_mounted(device) { device } else { 0 }
}

/// Whether file system `device` is mounted, by what the agent knows of mounts. A CPU remembers the last one that is: most
/// calls in a row are on the same, and a look-up costs several times as much.
#[inline(always)]
fn is_mounted(device: u32) -> bool {
    let Some(cpu) = cpu() else { return false };
    // First: where the agent removes it meanwhile, what is found is of before.
    let asked_at = mounts_changed();
    // SAFETY: this CPU's own; asked for its presence alone.
    unsafe {
        if (*cpu).mounted == device && (*cpu).mounted_asked_at == asked_at {
            return device != 0;
        }
        let is_mounted = DEVICES.get(&device).is_some();
        if is_mounted {
            ((*cpu).mounted, (*cpu).mounted_asked_at) = (device, asked_at);
        }
        is_mounted
    }
}

/// Two words of the program's memory; zeros where they cannot be read.
#[inline(always)]
fn user(address: u64) -> [u32; 2] {
    // SAFETY: read with all faults caught.
    unsafe { bpf_probe_read_user(address as *const [u32; 2]) }.unwrap_or([0; 2])
}
