//! The maps, and how a program finds its slot's place in them.

use core::{arch::asm, cell::UnsafeCell, ptr::addr_of_mut};

use aya_ebpf::{
    btf_maps::{Array, ArrayOfMaps, PerCpuArray},
    helpers::generated::bpf_map_lookup_percpu_elem,
    macros::{btf_map, map},
    maps::{HashMap, Queue, RingBuf},
};
use tracer_ebpf::{
    MMAPABLE,
    cells::CELLS,
    ids::{self, HIERARCHIES, IdSet, SETS, SLOTS},
    records::{
        BEFORE_TASKS, Cpu, CpuRecord, FaultEntry, LIFE_HEADER_BYTES, LifeEvent, PATH_BYTES,
        PID_VALUES, TASKS as TASK_ENTRIES, TaskRecord, VICTIM_VALUES,
    },
    tables::{block::BlockCell, job::JobBank, latency::LatencyBank, wait::WaitCell},
};

use crate::cells::Table;

/// Banks are typed as arrays of words: kernel 6.1 refuses inner maps whose value is a struct.
type Words<T> = PerCpuArray<T, 1>;
/// Which key has claimed each cell of a table.
pub type Claims = HashMap<u32, u64>;

#[btf_map]
static IDS: Array<IdSet, { (SETS * HIERARCHIES) as usize }, MMAPABLE> = Array::new();
/// In .bss and no map of its own: found by address, which spares each switch two look-ups.
#[repr(C)]
struct Tasks {
    _to_cache_line: [u64; BEFORE_TASKS / 8],
    records: UnsafeCell<[TaskRecord; TASK_ENTRIES as usize]>,
}

const _: () = assert!(size_of::<Tasks>() <= 4 << 20, "kernel 5.10 refuses a larger map value");

// SAFETY: plain words, written by the CPU that the task runs on. Two tasks that share a record may write
// it at once; what they then lose is counted when either finds the other's pid.
unsafe impl Sync for Tasks {}

// SAFETY: all integers; zeros are a valid value.
static TASKS: Tasks = unsafe { core::mem::zeroed() };

/// Key of a map of one value.
static FIRST: u32 = 0;

#[btf_map]
static CPUS: PerCpuArray<Cpu, 1> = PerCpuArray::new();
#[btf_map]
static BANKS: ArrayOfMaps<Words<[u64; size_of::<JobBank>() / 8]>, SLOTS> = ArrayOfMaps::new();
#[btf_map]
static LATENCY: ArrayOfMaps<Words<[u64; size_of::<LatencyBank>() / 8]>, SLOTS> = ArrayOfMaps::new();
/// One entry for each task in full mode; the agent shrinks it to one otherwise, and clears it when nobody
/// tells of begins any more.
#[btf_map]
static FAULTS: Array<FaultEntry, { PID_VALUES as usize }, MMAPABLE> = Array::new();
/// Tasks chosen by the out-of-memory killer that have not exited yet, by the low bits of their pids.
#[btf_map]
static VICTIMS: Array<u32, { VICTIM_VALUES as usize }> = Array::new();
#[map]
static EVENTS: RingBuf = RingBuf::with_byte_size(64 * 1024, 0);
/// Where an event is put together: too large for the stack.
#[btf_map]
static SCRATCH: PerCpuArray<LifeEvent, 1> = PerCpuArray::new();
/// Flags of each slot (`ids::INHERITED` and so on), written by the agent.
#[btf_map]
static SLOT_FLAGS: Array<u64, SLOTS, MMAPABLE> = Array::new();
/// Slots with banks that no job has: the agent fills, `cgroup_mkdir` takes.
#[map]
static SPARE_SLOTS: Queue<u32> = Queue::with_max_entries(SLOTS as u32, 0);
/// Cells of block I/O. The kernel begins the data of a map that may be mapped at a page: each cell, of a
/// multiple of 64 bytes, begins a cache line. Only a key's claim (below) turns a free one into a used one; the agent frees those
/// of a slot that has ended.
#[btf_map]
static BLOCKS: Array<BlockCell, { CELLS as usize }, MMAPABLE> = Array::new();
#[map]
static CELL_CLAIMS: Claims = HashMap::with_max_entries(CELLS, 0);
/// Cells of waits for file systems, as those of block I/O.
#[btf_map]
static WAIT_CELLS: Array<WaitCell, { CELLS as usize }, MMAPABLE> = Array::new();
#[map]
static WAIT_CLAIMS: Claims = HashMap::with_max_entries(CELLS, 0);

/// Slot of cgroup `id` in table `hierarchy`; 0 where no job owns it.
#[inline(always)]
pub fn slot_of(hierarchy: u32, id: u64) -> u16 {
    match IDS.get(ids::set_of(hierarchy, id)) {
        Some(set) => ids::slot_in(set, id),
        None => 0,
    }
}

/// The set of `id`, to be written.
#[inline(always)]
pub fn id_set(hierarchy: u32, id: u64) -> Option<*mut IdSet> {
    IDS.get_ptr_mut(ids::set_of(hierarchy, id))
}

/// Record of task `pid`, or of the one that shares its place: that of `task_index`, in instructions that the verifier
/// follows.
#[inline(always)]
pub fn task_record(pid: u32) -> *mut TaskRecord {
    const _: () = assert!(PID_VALUES == 65_536 && TASK_ENTRIES == 65_535);
    let mut index = u64::from(pid);
    // SAFETY: masks and bounds a register, which the verifier must see; the index is then within the
    // table.
    unsafe {
        asm!(
            "{0} &= 65535",
            "if {0} < 65535 goto +1",
            "{0} = 65534",
            inout(reg) index,
            options(pure, nomem, nostack)
        );
        TASKS.records.get().cast::<TaskRecord>().add(index as usize)
    }
}

/// This CPU's record.
#[inline(always)]
pub fn cpu_record() -> Option<*mut CpuRecord> {
    Some(CPUS.get_ptr_mut(0)?.cast())
}

/// Counts that the bank of `slot` on this CPU, whose record is `cpu`, has changed. The bank of the task that runs changes
/// too, without a count: the agent knows that slot from the record.
///
/// # Safety
/// `cpu` is what [`cpu_record`] gave.
#[inline(always)]
pub unsafe fn moved(cpu: *mut CpuRecord, slot: u32) {
    const _: () = assert!(SLOTS == 1024);
    let mut index = u64::from(slot);
    // SAFETY: masks a register, which the verifier must see; the index is then within the array, which is behind the
    // record.
    unsafe {
        asm!("{0} &= 1023", inout(reg) index, options(pure, nomem, nostack));
        *addr_of_mut!((*cpu.cast::<Cpu>()).moves).cast::<u32>().add(index as usize) += 1;
    }
}

/// The record of CPU `cpu`.
#[inline(always)]
pub fn cpu_record_of(cpu: u32) -> Option<*mut CpuRecord> {
    // SAFETY: the map's values are of that type; the kernel answers null where there is no such CPU.
    let record = unsafe {
        bpf_map_lookup_percpu_elem(
            (&raw const CPUS).cast_mut().cast(),
            (&raw const FIRST).cast(),
            cpu,
        )
    };
    (!record.is_null()).then_some(record.cast())
}

/// This CPU's bank of `slot`; `None` (to be counted) where the agent has made none.
#[inline(always)]
pub fn bank(slot: u32) -> Option<*mut JobBank> {
    Some(BANKS.get_value_ptr_mut(slot, &0)?.cast())
}

/// This CPU's fault latencies of `slot`.
#[inline(always)]
pub fn latency_bank(slot: u32) -> Option<*mut LatencyBank> {
    Some(LATENCY.get_value_ptr_mut(slot, &0)?.cast())
}

/// The fault in progress of task `pid`, or of the one that shares its place.
#[inline(always)]
pub fn fault_entry(pid: u32) -> Option<*mut FaultEntry> {
    FAULTS.get_ptr_mut(pid & (PID_VALUES - 1))
}

/// The pid chosen by the out-of-memory killer among those that share `pid`'s place; 0 for none.
#[inline(always)]
pub fn victim(pid: u32) -> Option<*mut u32> {
    VICTIMS.get_ptr_mut(pid & (VICTIM_VALUES - 1))
}

/// The cells of block I/O.
pub enum BlockCells {}

impl Table for BlockCells {
    type Cell = BlockCell;

    #[inline(always)]
    fn cell(index: u32) -> Option<*mut BlockCell> {
        BLOCKS.get_ptr_mut(index)
    }

    #[inline(always)]
    fn claims() -> &'static Claims {
        &CELL_CLAIMS
    }
}

/// The cells of waits for file systems.
pub enum WaitCells {}

impl Table for WaitCells {
    type Cell = WaitCell;

    #[inline(always)]
    fn cell(index: u32) -> Option<*mut WaitCell> {
        WAIT_CELLS.get_ptr_mut(index)
    }

    #[inline(always)]
    fn claims() -> &'static Claims {
        &WAIT_CLAIMS
    }
}

/// Flags of `slot`.
#[inline(always)]
pub fn slot_flags(slot: u16) -> u64 {
    SLOT_FLAGS.get(slot.into()).copied().unwrap_or(0)
}

/// A slot to spare; 0 where there is none.
#[inline(always)]
pub fn take_spare() -> u16 {
    SPARE_SLOTS.pop().ok().flatten().unwrap_or(0) as u16
}

/// Gives back what [`take_spare`] gave.
#[inline(always)]
pub fn give_spare(slot: u16) {
    let _ = SPARE_SLOTS.push(&slot.into(), 0);
}

/// Where this CPU puts an event together.
#[inline(always)]
pub fn scratch() -> Option<*mut LifeEvent> {
    SCRATCH.get_ptr_mut(0)
}

/// Tells the agent `event`, without what is behind its path; `false` where the ring is full.
#[inline(always)]
pub fn tell(event: *const LifeEvent, path_bytes: u32) -> bool {
    const _: () = assert!(PATH_BYTES == 1024);
    let mut bytes = u64::from(path_bytes);
    // SAFETY: masks a register, which the verifier must see.
    unsafe { asm!("{0} &= 1023", inout(reg) bytes, options(pure, nomem, nostack)) };
    let bytes = LIFE_HEADER_BYTES + bytes as usize;
    // SAFETY: the header and the path so far, within the event.
    let event = unsafe { core::slice::from_raw_parts(event.cast::<u8>(), bytes) };
    EVENTS.output::<[u8]>(event, 0).is_ok()
}
