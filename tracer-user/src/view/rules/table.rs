//! The table of the rules: each with its threshold, whose that is, and what to do about it. Adding one is a function
//! beside its like and a row here; docs/FINDINGS.md and the tests follow.

use super::{
    COURSE_NS, LEAST_NS, REQUEST_NS, Rule, asked, asleep, by_file, cache, calls, cpu, files, hangs,
    io, memory, names, programs, together, waited,
};
use crate::{
    base::units::{bytes, count, percent},
    model::needed::MEMORY_IS_SHORT,
    view::gpu_idle,
};

/// All of them. A job of which several say the same is told by the weightiest.
pub static RULES: &[Rule] = &[
    Rule {
        id: "out_of_memory",
        least_ns: 0,
        threshold: || "the kernel killed a process of the job for lack of memory".into(),
        source: "",
        advice: "ask for more memory, or let each process hold less at a time",
        shown: "memory",
        find: memory::out_of_memory,
    },
    Rule {
        id: "time_limit",
        least_ns: 0,
        threshold: || "it ended at its time limit".into(),
        source: "",
        advice: "ask for more time, or write checkpoints and go on from them",
        shown: "asked",
        find: asked::time_limit,
    },
    Rule {
        id: "disk_errors",
        least_ns: 0,
        threshold: || "a request to a disk failed".into(),
        source: "",
        advice: "tell the administrators: the disk or its connection is failing",
        shown: "files",
        find: io::disk_errors,
    },
    files::FILE_ERRORS,
    Rule {
        id: "blocked_on_io",
        least_ns: LEAST_NS,
        threshold: || format!("blocked on I/O for {} of the time", percent(io::BLOCKED)),
        source: "",
        advice: "read ahead in another thread, or keep the data on a local disk or in memory; where requests are \
                 small, move larger pieces at once (1 MiB or more)",
        shown: "files",
        find: io::blocked,
    },
    Rule {
        id: "blocked_on_large_io",
        least_ns: LEAST_NS,
        threshold: || {
            format!(
                "the same, mostly for requests of {} or more to a local disk",
                bytes(io::LARGE_BYTES)
            )
        },
        source: "",
        advice: "read ahead or write in another thread, move less (compress it, keep results that are needed), or use \
                 a faster disk",
        shown: "files",
        find: io::blocked_on_large,
    },
    Rule {
        id: "sync",
        least_ns: LEAST_NS,
        threshold: || calls::often("fsync and the like"),
        source: "",
        advice: "flush once at the end or every few seconds, not after each record",
        shown: "files",
        find: calls::sync,
    },
    Rule {
        id: "metadata",
        least_ns: LEAST_NS,
        threshold: || calls::often("open, stat and the like, not explained by a local disk"),
        source: "",
        advice: "pack small files into an archive or a database, or copy them to a local disk first",
        shown: "files",
        find: calls::metadata,
    },
    files::SMALL_ACCESSES,
    files::SMALL_FILES,
    files::MISSING_FILES,
    hangs::FILE_HANGS,
    names::MANY_NAMES,
    names::FILE_LOCKS,
    by_file::SYNC_EACH_RECORD,
    by_file::OPENED_AGAIN,
    by_file::RANDOM_READS,
    by_file::READ_AGAIN,
    cache::COLD_CACHE,
    cache::READAHEAD_WASTED,
    cache::DIRECT_READS,
    cache::THROTTLED_WRITES,
    cache::MMAP_RANDOM,
    together::SHARED_WRITES,
    together::UNEVEN_IO,
    Rule {
        id: "memory_maps",
        least_ns: LEAST_NS,
        threshold: || {
            format!(
                "blocked in mmap, munmap or brk for {} of the time, {} times",
                percent(calls::KERNEL),
                count(calls::MANY)
            )
        },
        source: "",
        advice: "allocate before the loop, not in it; an allocator such as jemalloc keeps what was freed",
        shown: "cpu",
        find: calls::memory_maps,
    },
    Rule {
        id: "starting_children",
        least_ns: LEAST_NS,
        threshold: || {
            format!("blocked in vfork or posix_spawn for {} of the time", percent(calls::KERNEL))
        },
        source: "",
        advice: "start one helper that stays, not one for each item",
        shown: "cpu",
        find: calls::vfork,
    },
    Rule {
        id: "blocked_otherwise",
        least_ns: LEAST_NS,
        threshold: || {
            format!(
                "blocked in drivers or in other calls for {} of the time",
                percent(calls::OTHERWISE)
            )
        },
        source: "",
        advice: "look at what the program does through drivers or io_uring",
        shown: "cpu",
        find: calls::otherwise,
    },
    waited::CPU_QUOTA,
    waited::BOUND_TO_FEW,
    waited::NODE_BUSY,
    waited::WAITED_FOR_CPU,
    programs::MANY_PROGRAMS,
    Rule {
        id: "major_faults",
        least_ns: LEAST_NS,
        threshold: || {
            format!(
                "major faults blocked it for {} of the time, memory full or swapped",
                percent(memory::MAJOR)
            )
        },
        source: "",
        advice: "ask for more memory, or touch less of it at a time",
        shown: "memory",
        find: memory::major_faults,
    },
    Rule {
        id: "mapped_files",
        least_ns: LEAST_NS,
        threshold: || "the same, and memory was not short".into(),
        source: "",
        advice: "read the file in order or whole (read, MADV_WILLNEED), or copy it to a local disk first; programs that \
                 start for the first time on a node do this once",
        shown: "memory",
        find: memory::mapped_files,
    },
    Rule {
        id: "minor_faults",
        least_ns: LEAST_NS,
        threshold: || format!("minor faults took {} of the time on CPU", percent(memory::MINOR)),
        source: "",
        advice: "use memory again in place of allocating it anew, or larger pages",
        shown: "memory",
        find: memory::minor_faults,
    },
    Rule {
        id: "all_asleep",
        least_ns: LEAST_NS,
        threshold: || format!("every task slept for {} of the time", percent(asleep::ASLEEP)),
        source: "",
        advice: "look at what it waits for: another program, a server, or a pause of its own",
        shown: "waits",
        find: asleep::all_asleep,
    },
    Rule {
        id: "workers_wait",
        least_ns: LEAST_NS,
        threshold: || {
            "one core used of several while at least two tasks wait on pipes, or for locks after a busier time".into()
        },
        source: "",
        advice: "split the work into smaller pieces, so that none of the workers is last by far",
        shown: "waits",
        find: asleep::pool,
    },
    Rule {
        id: "waiting_in_poll",
        least_ns: LEAST_NS,
        threshold: || often("in poll"),
        source: "",
        advice: "divide the work more evenly, or use fewer ranks",
        shown: "waits",
        find: asleep::poll,
    },
    Rule {
        id: "waiting_for_locks",
        least_ns: LEAST_NS,
        threshold: || often("for locks"),
        source: "",
        advice: "hold locks for less time, give each thread data of its own, or use fewer threads",
        shown: "waits",
        find: asleep::locks,
    },
    cpu::IDLE_CORES,
    Rule {
        id: "slowest_node",
        least_ns: REQUEST_NS,
        threshold: || {
            format!("a part did more than the mean by {} of its time", percent(asked::IMBALANCE))
        },
        source: "jobstats and ClusterCockpit: 0.1 between nodes; POP: balance of 0.8 is acceptable",
        advice: "divide the work by what it costs, not by its number of items",
        shown: "asked",
        find: asked::imbalance,
    },
    Rule {
        id: "memory_short",
        least_ns: LEAST_NS,
        threshold: || {
            format!(
                "memory peaked at {} of its limit, {} or more of it needed, file cache not included",
                percent(MEMORY_IS_SHORT),
                percent(memory::NEEDED)
            )
        },
        source: "",
        advice: "ask for a little more memory before its data grows",
        shown: "memory",
        find: memory::memory_short,
    },
    Rule {
        id: "cache_at_limit",
        least_ns: LEAST_NS,
        threshold: || {
            format!(
                "memory peaked at {} of its limit, and less than {} of that was needed, file cache not included",
                percent(MEMORY_IS_SHORT),
                percent(memory::NEEDED)
            )
        },
        source: "",
        advice: "",
        shown: "memory",
        find: memory::cache_at_limit,
    },
    Rule {
        id: "memory_kept",
        least_ns: COURSE_NS,
        threshold: || {
            format!(
                "memory only grew, to {} or more, from {} of that or less",
                bytes(memory::KEPT_BYTES),
                percent(memory::KEPT_FROM)
            )
        },
        source: "",
        advice: "handle one piece after the other (read line by line, write results as they come), or look for what is \
                 never freed",
        shown: "memory",
        find: memory::memory_kept,
    },
    Rule {
        id: "memory_unused",
        least_ns: REQUEST_NS,
        threshold: || {
            format!("it needed less than {} of the memory asked", percent(memory::NEEDED))
        },
        source: "jobstats: below 70 %, ask for 1.2 times the peak",
        advice: "ask for less memory: the job starts sooner, and others fit beside it",
        shown: "asked",
        find: asked::memory_unused,
    },
    Rule {
        id: "time_unused",
        least_ns: REQUEST_NS,
        threshold: || format!("it took {} of the time asked or less", percent(asked::TIME)),
        source: "jobstats: below 60 %",
        advice: "ask for less time: a shorter job fits into gaps of the queue",
        shown: "asked",
        find: asked::time_unused,
    },
    Rule {
        id: "gpu_idle",
        least_ns: LEAST_NS,
        threshold: || {
            format!("a GPU was busy for less than {} of the time", percent(gpu_idle::IDLE))
        },
        source: "",
        advice: "shorten what it waits for: more loader processes, larger batches, data closer by",
        shown: "gpu",
        find: gpu_idle::idle,
    },
    Rule {
        id: "gpu_busy",
        least_ns: LEAST_NS,
        threshold: || format!("all its GPUs were busy for {} of the time", percent(gpu_idle::FULL)),
        source: "",
        advice: "",
        shown: "gpu",
        find: gpu_idle::busy,
    },
    Rule {
        id: "gpu_unused",
        least_ns: LEAST_NS,
        threshold: || "a GPU was allocated and no process of the job used it".into(),
        source: "jobstats: GPU use of 0 %",
        advice: "ask for the GPUs that it uses, or check that the program finds them",
        shown: "gpu",
        find: gpu_idle::unused,
    },
    Rule {
        id: "gpu_too_large",
        least_ns: REQUEST_NS,
        threshold: || {
            format!(
                "one GPU busy for {} of the time at most, one core, less than 32 GiB of memory and 10 GiB of the GPU's",
                percent(asked::SMALL_GPU)
            )
        },
        source: "jobstats: a MIG instance would do",
        advice: "ask for a part of a GPU (MIG) where the site has them",
        shown: "asked",
        find: asked::gpu_too_large,
    },
];

fn often(what: &str) -> String {
    format!(
        "less than {} of the cores used, and tasks for {} of the others asleep {what}, {} times",
        percent(1.0 - cpu::FEW_CORES),
        percent(asleep::FILL),
        count(asleep::MANY)
    )
}
