//! What a record holds beside the tables of the measurements, of `job_info` and of the timeline: each key's
//! meaning, for docs/RECORD.md.

/// A key of the document.
#[derive(Debug)]
pub struct Key {
    /// Where it stands: `peaks.cores`. Never renamed.
    pub path: &'static str,
    /// What it holds.
    pub form: &'static str,
    /// One sentence on its meaning.
    pub help: &'static str,
}

/// Key of the files.
pub const FILES: &str = "io_files";
/// Key of the folders.
pub const FOLDERS: &str = "io_folders";
/// Key of what there was no room for in both.
pub const LOST: &str = "io_lost";
/// Key of the slowest operations.
pub const SLOWEST: &str = "io_slowest";
/// Key of the threads.
pub const THREADS: &str = "io_threads";
/// Key of the programs.
pub const PROGRAMS: &str = "io_programs";
/// Key of the durations over time.
pub const LATENCY: &str = "io_latency";

/// Key of the software.
pub const SOFTWARE: &str = "software";

/// All of them, in the order of the document.
pub static KEYS: &[Key] = &[
    key("schema", "integer", "Version of the form. A field that is added does not change it."),
    key("cluster", "string", "Name of the cluster, if it has one."),
    key("hosts", "list of strings", "The node that the record tells of."),
    key("job.job", "string", "The job's id."),
    key("job.manager", "string", "The scheduler or runtime whose job it is."),
    key("job.user", "string", "Its owner."),
    key(
        "job.step",
        "string",
        "The step, if steps are series of their own (agent). The times for which its job held cores, memory and GPUs \
         are in the job's own record, which has no step.",
    ),
    key(
        "elapsed_ns",
        "integer, ns",
        "Time for which the job was counted: from its start, or from `job.counted_from`, to its end, or to `timeline.end`.",
    ),
    key("exit.code", "integer", "Exit status of the command; null if a signal ended it (run)."),
    key("exit.signal", "integer", "Number of the signal that ended the command, else null (run)."),
    key("intervals", "integer", "Intervals measured, without those of less than 100 ms."),
    key(
        "peaks.cores",
        "float",
        "Cores in use over the busiest interval; of several records together the most that can have been in use at once. Like the other peaks absent where there was no interval to measure, or none in which it was counted.",
    ),
    key("peaks.cores_from", "integer, ns", "When that interval began, since the Unix epoch."),
    key(
        "peaks.disk_bytes_per_s",
        "integer, bytes/s",
        "Read and written per second over the busiest interval, all local disks.",
    ),
    key("peaks.disk_from", "integer, ns", "When that interval began, since the Unix epoch."),
    key(
        "parts",
        "list of objects",
        "Steps, their tasks, and a pod's containers, each by its own cgroup (agent): `host` (of merged records), `step`, `task` (absent: the whole step), `begin` and `end` (ns since the Unix epoch), `on_cpu_ns`, `memory_peak_bytes` (page cache included), `disk_read_bytes`, `disk_written_bytes`: as read last at `seen`, so what came between that and its end is missing. Those of a step contain its tasks'.",
    ),
    key(
        "other_parts",
        "object",
        "Steps and tasks beyond the 256 that are listed of a node: `count`, `on_cpu_ns`. Listed are those that run, and those that ran longest.",
    ),
    key(
        FILES,
        "list of objects",
        "Files (`run --io`, `io`): the 64 that took longest, those with most bytes, most operations and most opens; on each node. `path` (where it was when it was used first; `…/` before it where that is too long), `fs` and `mount` as in `io`, `files` (how many of that name, one after the other), and of operations by descriptor, but for fstat: `ops`, `opens`, `reads`, `writes`, `syncs`, `read_bytes`, `written_bytes`, `time_ns`, `waited_ns`, `open_ns`, `read_ns`, `write_ns`, `sync_ns`; `consecutive`, `sequential`, `random` as in `io`; `fetched_bytes` (of pages that its reads and page faults brought into the page cache) and `faults` (page faults that did); `size_bytes` when it was used last; `shared_writes`, `shared_written_bytes`, `shared_write_ns`: of the writes, those between two readings in which several threads of the node wrote to it. Requests to io_uring are in `ops` and in the bytes alone. A copy (copy_file_range, sendfile, splice) is one of the file that it reads; the one that it writes has none of it, unless a splice takes it out of a pipe; its time is in `time_ns`, not in `read_ns`. What is in no file is `io` less these.",
    ),
    key(
        FOLDERS,
        "list of objects",
        "Folders, chosen in the same way: of each what is known of the files that are directly in it, `files` of them. What is in no folder is `io` less these.",
    ),
    key(
        LOST,
        "object",
        "What the tables of files had no room for (`run --io`, `io`), absent where that is nothing: `ops` (operations by descriptor that are told of no file and of no folder, also where a file's name was driven out before it was read; `io` has them; closes of a file with which the thread did nothing else, as far as the tables know, are in neither) and `files` (files of which no more is known than their folders; one that was used again counts again).",
    ),
    key(
        SLOWEST,
        "list of objects",
        "The 32 operations on files that took longest, the longest first (`run --io`, `io`): `begin` (ns since the Unix epoch), `took_ns`, `waited` (whether the thread gave its CPU away), `under_way` (true: it had not returned when the counting ended, and took longer; of `io` alone), `op`, `fs` and `mount` as in `io`, `path` (of an open file as in `io_files`; else as the call named it, at most 251 bytes; absent: it has none), `offset` and `bytes` of reads and writes, `error` (the name of the error), `program`, `process` and `thread` as in `io_threads`, and `host` (of merged records). Operations on pipes, sockets and devices are not among them.",
    ),
    key(
        THREADS,
        "list of objects",
        "Threads (`run --io`, `io`): the 64 that took longest on files, and the next 64 by bytes; on each node. `host` (of merged records), `program` (what the thread was called at its first operation since it executed a program), `process`, `thread`, and of its operations on files: `ops`, `time_ns`, `waited_ns`, `metadata_ns` (of open, close, stat, getdents, unlink, rename, link, mkdir, setattr), `read_bytes` (copies included), `written_bytes`. Operations on pipes, sockets and devices are not in them.",
    ),
    key(
        PROGRAMS,
        "list of objects",
        "The 64 names of threads that took longest, of each node: `program`, `threads` (how many; where more than 8,191 begin between two readings, the first of them are missing), and the same of all of them. What is in no program is `io` less these.",
    ),
    key(
        LATENCY,
        "object",
        "How long operations on files took over time (`run --io`, `io`), those on pipes, sockets and devices left out: `begin` (of the first column, ns since the Unix epoch), `width_ns` (of each column: a second times a power of two), and `columns`, at most 240, each a list of how many operations took less than 2^12 ns (4.1 µs), then 2^14 ns (16 µs), and so on, four times as long each, to those of 2^34 ns (17 s) and more. An interval is in the column in which its middle lies.",
    ),
    key(
        "software.level",
        "string",
        "How much is told of the software that ran: `counts`, `names` or `full`; of several nodes the least. All of `software` is absent where nobody watched for it (`run --software`). An import is not yet a use, and a failed one counts; nothing of a user's own has a name here (docs/PRIVACY.md).",
    ),
    key(
        "software.by",
        "list of strings",
        "How Python modules were seen: `open` (their files were opened), `read` (their first pages were read), `extensions` (compiled ones were mapped: pure ones are missing; beside `read` those on file systems that read past the page cache, as a tmpfs), `programs` (neither modules nor libraries).",
    ),
    key(
        "software.since_begin",
        "boolean",
        "Whether the job was watched from its begin on, on every node.",
    ),
    key("software.lost", "integer", "Sightings that found no room; absent: none."),
    key(
        "software.opted_out",
        "boolean",
        "True: the job asked that nothing is told of it, and nothing else is.",
    ),
    key(
        "software.programs",
        "list of objects",
        "Programs that were executed, at most 256 of a node: `name`, `version` (of the file's name or its folder's), `kind` (`python`, `shell`, `mpi_launcher`, `compiler`, …), `executions`.",
    ),
    key(
        "software.other_programs",
        "integer",
        "Programs without a name here: a user's own, denied ones, those beyond the bound. Of this and the like the largest of all nodes.",
    ),
    key(
        "software.libraries",
        "list of objects",
        "Shared libraries that were mapped, at most 256 of a node: `name` (family of the soname: `libopenblas`), `version`, `what` (what it belongs to: `OpenBLAS`, `OpenMPI`, `CUDA`, …). The C library's own parts are told in `full` alone.",
    ),
    key("software.other_libraries", "integer", "Libraries without a name here."),
    key(
        "software.packages",
        "list of objects",
        "Python packages that were imported, at most 256 of a node: `name` (as it is imported), `distribution` (as it is installed, in small letters with hyphens), `version`, `python` (`3.11`). The standard library is not among them.",
    ),
    key(
        "software.own_modules",
        "integer",
        "Python modules of a user's own, in their folders of packages.",
    ),
    key(
        "software.unknown_packages",
        "integer",
        "Packages without a name here for another reason: nobody could read what is installed beside them, they are denied, or beyond the bound.",
    ),
    key(
        "software.stacks",
        "list of objects",
        "Where they came from: `kind` (`conda`, `easybuild`, `spack`, `module`, `container`, `virtualenv`, `nix`, …), `name` (absent: a user's own), `version`, `toolchain`.",
    ),
    key(
        "software.python_processes_most",
        "integer",
        "The most Python processes at once on one node.",
    ),
    key("software.gpu_library", "boolean", "Whether a library was loaded that computes on GPUs."),
    key(
        "timeline.begin",
        "integer, ns",
        "Time from which the job was counted, since the Unix epoch. Rounded down to a multiple of the width it is the begin of the first column.",
    ),
    key(
        "timeline.end",
        "integer, ns",
        "Time up to which the job was counted, since the Unix epoch: of a job without `job.end`, when it was last seen.",
    ),
    key("timeline.width_ns", "integer, ns", "Width of each column: a second times a power of two."),
    key("timeline.columns", "integer", "Number of columns."),
    key(
        "not_counted",
        "list of objects",
        "Times in which something could not be counted. `what`: the family of probes that was shed (`sched`, `block`, … as in `shed_*` of `jobtrace_self`), `slot` (no slot was free for the job: of its cgroup's files is told what they show, nothing that adds up over time) or `agent` (none was running); `for_ns`: for how long, all times added up; `from`, `until`: within which time, nanoseconds since the Unix epoch.",
    ),
    key(
        "unknown",
        "list of strings",
        "What cannot be known of the job on this node, or was not asked for (`jobtrace io`): keys of measurements, names of fields, and `write_back`, writes that the kernel does later.",
    ),
    key("notes", "list of strings", "What the reader must know besides, as the summary says it."),
];

const fn key(path: &'static str, form: &'static str, help: &'static str) -> Key {
    Key { path, form, help }
}
