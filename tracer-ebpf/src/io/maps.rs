//! The maps.

use core::cell::UnsafeCell;

use aya_ebpf::{
    btf_maps::{Array, PerCpuArray},
    macros::{btf_map, map},
    maps::{HashMap, LpmTrie, LruHashMap, PerCpuHashMap, Queue, lpm_trie::Key},
};
use tracer_ebpf::{
    MMAPABLE,
    tables::{
        in_flight::{InFlight, TASKS},
        io::{IO_CELLS, IO_ERRORS, IO_MOUNTS, IO_PATH_BYTES, IO_REQUESTS, IoCell, IoCpu},
        io_file::{FileCell, FileId, FileKey, FileName, HEAVY_FILES, IO_INSTANCES, LIGHT_FILES},
        io_slow::SlowOps,
        io_task::{TASK_CELLS, TaskCell},
    },
};

/// The beginning of a path, as mount points are looked up by.
pub type Path = Key<[u8; IO_PATH_BYTES]>;

/// The state of the whole object, read at each call of every task: on a cache line that is seldom written.
#[repr(C, align(64))]
pub struct State {
    /// How many tasks were made or moved: what a CPU knows of a stack holds until the next.
    pub tasks_changed: UnsafeCell<u64>,
    /// Whether the job has executed its command.
    pub has_begun: UnsafeCell<u64>,
}

// SAFETY: plain words; a count of two CPUs at once that is lost has changed nonetheless.
unsafe impl Sync for State {}

/// The state.
pub static STATE: State =
    State { tasks_changed: UnsafeCell::new(0), has_begun: UnsafeCell::new(0) };

#[btf_map]
static IO_CPUS: PerCpuArray<IoCpu, 1> = PerCpuArray::new();
#[btf_map]
static IN_FLIGHT: Array<InFlight, { TASKS as usize }, MMAPABLE> = Array::new();
/// Indices of cells by `IoKey`; those of unknown file systems are the agent's to make.
#[map]
pub static CELLS: HashMap<u64, u32> = HashMap::with_max_entries(IO_CELLS, 0);
/// The cells, from 1 on.
#[btf_map]
static CELL_SUMS: PerCpuArray<IoCell, { IO_CELLS as usize + 1 }> = PerCpuArray::new();
/// Indices of those that are nothing's yet; the agent fills it.
#[map]
pub static CELL_PLACES: Queue<u32> = Queue::with_max_entries(IO_CELLS, 0);
/// How often each error came, by `IoKey`.
#[map]
pub static ERRORS: PerCpuHashMap<u64, u64> = PerCpuHashMap::with_max_entries(IO_ERRORS, 0);
/// Mounted file systems by their number.
#[map]
pub static DEVICES: HashMap<u32, u32> = HashMap::with_max_entries(IO_MOUNTS, 0);
/// The same by the paths that begin with where they are mounted.
#[map]
pub static MOUNTS: LpmTrie<[u8; IO_PATH_BYTES], u32> = LpmTrie::with_max_entries(2 * IO_MOUNTS, 0);
/// How often one was removed from [`DEVICES`].
#[btf_map]
static MOUNTS_CHANGED: Array<u32, 1> = Array::new();
/// What threads did to files.
#[map]
pub static LIGHT: LruHashMap<FileKey, FileCell> = LruHashMap::with_max_entries(LIGHT_FILES, 0);
/// The same, where it is more.
#[map]
pub static HEAVY: LruHashMap<FileKey, FileCell> = LruHashMap::with_max_entries(HEAVY_FILES, 0);
/// What files were called when a thread used them first.
#[map]
pub static NAMES: LruHashMap<FileId, FileName> = LruHashMap::with_max_entries(LIGHT_FILES, 0);
/// The same of those with which more was done.
#[map]
pub static HEAVY_NAMES: LruHashMap<FileId, FileName> = LruHashMap::with_max_entries(HEAVY_FILES, 0);
/// When the opens were that made files of systems without generations, by their numbers.
#[map]
pub static LIVES: LruHashMap<FileId, u32> = LruHashMap::with_max_entries(LIGHT_FILES, 0);
/// What file systems were met as, by their mounts' numbers.
#[map]
pub static INSTANCES: LruHashMap<u64, u64> = LruHashMap::with_max_entries(IO_INSTANCES, 0);
/// When requests to io_uring were submitted that are not completed, by their addresses.
#[map]
pub static REQUESTS: HashMap<u64, u64> = HashMap::with_max_entries(IO_REQUESTS, 0);
/// What threads did; those of a thread are found by [`InFlight::cell`].
#[btf_map]
static TASK_SUMS: Array<TaskCell, { TASK_CELLS as usize }> = Array::new();
/// Indices of its cells, the one that was taken longest ago first; the agent fills it.
#[map]
static TASK_PLACES: Queue<u32> = Queue::with_max_entries(TASK_CELLS, 0);
/// This CPU's longest operations.
#[btf_map]
static SLOW_OPS: PerCpuArray<SlowOps, 1> = PerCpuArray::new();
/// Where a name is read to: with room for one part more than is kept.
#[btf_map]
static NAME: PerCpuArray<[FileName; 2], 1> = PerCpuArray::new();
/// Where a path is read to: too large for the stack.
#[btf_map]
static PATH: PerCpuArray<Path, 1> = PerCpuArray::new();

/// What is known of this CPU.
#[inline(always)]
pub fn cpu() -> Option<*mut IoCpu> {
    IO_CPUS.get_ptr_mut(0)
}

/// The call in progress of task `pid`, or of one that shares its place.
#[inline(always)]
pub fn in_flight(pid: u32) -> Option<*mut InFlight> {
    IN_FLIGHT.get_ptr_mut(pid & (TASKS - 1))
}

/// The cell of a thread at `index`.
#[inline(always)]
pub fn task_sums(index: u32) -> Option<*mut TaskCell> {
    TASK_SUMS.get_ptr_mut(index)
}

/// How often the agent saw that a file system was unmounted.
#[inline(always)]
pub fn mounts_changed() -> u32 {
    // SAFETY: a word that the agent writes as a whole.
    MOUNTS_CHANGED.get_ptr(0).map_or(0, |count| unsafe { count.read_volatile() })
}

/// This CPU's cell at `index`.
#[inline(always)]
pub fn cell_sums(index: u32) -> Option<*mut IoCell> {
    CELL_SUMS.get_ptr_mut(index)
}

/// The index of the cell that was taken longest ago; 0 where none can be had.
#[inline(always)]
pub fn oldest_task() -> u32 {
    let Ok(Some(index)) = TASK_PLACES.pop() else { return 0 };
    let _ = TASK_PLACES.push(&index, 0);
    index
}

/// The longest operations on this CPU.
#[inline(always)]
pub fn slowest() -> Option<*mut SlowOps> {
    SLOW_OPS.get_ptr_mut(0)
}

/// Where this CPU reads a name to.
#[inline(always)]
pub fn name() -> Option<*mut [FileName; 2]> {
    NAME.get_ptr_mut(0)
}

/// Where this CPU reads a path to.
#[inline(always)]
pub fn path() -> Option<*mut Path> {
    PATH.get_ptr_mut(0)
}
