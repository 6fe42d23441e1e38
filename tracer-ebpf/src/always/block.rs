//! Block I/O: one hook, on completion, by the request's own time stamps.

use core::ptr::addr_of_mut;

use aya_ebpf::{helpers::bpf_ktime_get_ns, macros::btf_tracepoint, programs::BtfTracePointContext};
use tracer_ebpf::{
    kernel_fields::{fields::*, globals},
    settings::globals::BLOCK_TABLE,
    tables::block::{BlockKey, op},
};

use crate::{
    cells::cell,
    kernel::{Kernel, cgroup_id, global, has, load},
    maps::{BlockCells, cpu_record, slot_of},
    record::{add_shared, file_shared},
};

const OP_MASK: u32 = 0xff;
const REQ_OP_READ: u32 = 0;
const REQ_OP_WRITE: u32 = 1;
const REQ_OP_FLUSH: u32 = 2;
const REQ_OP_DISCARD: u32 = 3;
const REQ_OP_SECURE_ERASE: u32 = 5;

/// A request, or a part of one, completed.
#[btf_tracepoint(function = "block_rq_complete")]
pub fn block_rq_complete(ctx: BtfTracePointContext) -> i32 {
    let request: Kernel = ctx.arg(0);
    let error: u64 = ctx.arg(1);
    let bytes: u64 = ctx.arg(2);
    on_complete(request, error as u32 & 0xff, bytes as u32)
}

#[inline(always)]
fn on_complete(request: Kernel, error: u32, bytes: u32) -> i32 {
    let flags: u32 = load(request, REQUEST_FLAGS);
    let kind = flags & OP_MASK;
    // Driver commands (SCSI and NVMe pass-through, REQ_OP_DRV_IN and above) are no file's I/O.
    if kind >= 34 {
        return 0;
    }
    let op = match kind {
        REQ_OP_READ => op::READ,
        REQ_OP_FLUSH => op::FLUSH,
        REQ_OP_DISCARD | REQ_OP_SECURE_ERASE => op::DISCARD,
        // An empty write is a flush that a file system asked for, on behalf of the bio's cgroup.
        REQ_OP_WRITE if bytes == 0 => op::FLUSH,
        // Writes, zeroing, zone appends; the management of zones moves no data.
        _ if bytes != 0 => op::WRITE,
        _ => return 0,
    };
    let bio: Kernel = load(request, REQUEST_BIO);
    let mut slot = 0;
    if !bio.is_null() {
        let blkg: Kernel = load(bio, BIO_BLKG);
        let blkcg: Kernel = load(blkg, BLKG_BLKCG);
        slot = slot_of(global(&BLOCK_TABLE) as u32, cgroup_id(load(blkcg, BLKCG_CGROUP)));
    }
    let disk: Kernel = if has(&globals::REQUEST_DISK) {
        load(request, REQUEST_DISK)
    } else {
        load(load::<Kernel, _>(request, REQUEST_QUEUE), QUEUE_DISK)
    };
    let major: u32 = load(disk, DISK_MAJOR);
    let minor: u32 = load(disk, DISK_FIRST_MINOR);
    let key = BlockKey { slot, op, device: major << 20 | minor & 0xf_ffff };
    let Some((_, cell)) = cell::<BlockCells>(key.word()) else {
        if let Some(cpu) = cpu_record() {
            // SAFETY: this CPU's own record.
            unsafe { (*cpu).block_full += 1 };
        }
        return 0;
    };
    // SAFETY: a cell of the map, shared by all CPUs.
    unsafe {
        let mut done = bytes;
        if error != 0 {
            done = 0;
            add_shared(addr_of_mut!((*cell).errors), 1);
        }
        // A part of a request: the rest completes later, and with it the request.
        if load::<u32, _>(request, REQUEST_BYTES_LEFT) > bytes {
            add_shared(addr_of_mut!((*cell).size_ends.sum), done.into());
            return 0;
        }
        let issued: u64 = load(request, REQUEST_IO_START);
        // Never issued: a flush that the block layer answered itself.
        if issued != 0 {
            let now = bpf_ktime_get_ns();
            let start: u64 = load(request, REQUEST_START);
            // The order of the two, and why zeros stay out: `BlockCell`.
            if start != 0 && start < issued {
                let (ends, buckets) = (&raw mut (*cell).queue_ends, &raw mut (*cell).queue_buckets);
                file_shared(ends, buckets, issued - start);
            }
            let (ends, buckets) = (&raw mut (*cell).device_ends, &raw mut (*cell).device_buckets);
            file_shared(ends, buckets, since(now, issued));
        }
        let (ends, buckets) = (&raw mut (*cell).size_ends, &raw mut (*cell).size_buckets);
        file_shared(ends, buckets, done.into());
    }
    0
}

/// `later - earlier`, or 0 where the kernel's cached clock puts them the other way round.
#[inline(always)]
fn since(later: u64, earlier: u64) -> u64 {
    if later > earlier { later - earlier } else { 0 }
}
