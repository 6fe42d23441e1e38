//! Operations that have not returned: of a task that hangs, no program tells anything. What the tasks are in is asked of
//! /proc, since when of the programs.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::FileExt,
    sync::mpsc::{Sender, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use aya::maps::{Array, MapData};
use tracer_ebpf::{
    io_calls::{IoCall, IoCalls, OF_32_BITS, is_lock, place},
    tables::{
        in_flight::{InFlight, TASKS, tag},
        io::OPS,
    },
};

use super::calls;
use crate::{
    base::clock::{monotonic_ns, wall_at},
    bpf::maps::TakeMap,
    model::slow_ops::SlowOp,
};

/// What is shorter is no wait worth telling.
const LEAST_NS: u64 = 100_000_000;
/// Most threads that are looked at.
const MOST: usize = 4_096;
/// How long /proc may take: what it shows of a task may wait for what the task waits for.
const PATIENCE: Duration = Duration::from_millis(500);
/// Bytes of a path that a call names.
const PATH_BYTES: usize = 256;

/// The calls in progress.
pub struct UnderWay(Array<MapData, [u64; size_of::<InFlight>() / 8]>);

/// A thread in an operation on a file.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    process: u32,
    thread: u32,
    number: u32,
    call: IoCall,
    program: String,
    /// As the thread's process, or the call, names it.
    path: String,
}

impl UnderWay {
    /// Of loaded programs.
    ///
    /// # Errors
    /// When the map is missing or of another kind.
    pub fn new(take: &mut TakeMap<'_>) -> Result<Self> {
        Ok(Self(take("IN_FLIGHT")?.try_into().context("map IN_FLIGHT")?))
    }

    /// What the threads of `processes` are in now and have been for long, where it has been counted since `since_ns`
    /// (CLOCK_MONOTONIC): what began before took that long at least. `place` gives type and mount of a path's file system.
    pub fn long(
        &self,
        processes: &BTreeSet<u32>,
        since_ns: u64,
        place: impl Fn(&str) -> [String; 2],
    ) -> Vec<SlowOp> {
        let now_ns = monotonic_ns();
        let told = |found: Found| {
            let begin_ns = match self.begin_ns(&found) {
                // It waits for who writes to a pipe, or may have begun so.
                Some(0) => return None,
                None if found.call.may_be_out_of_pipe() => return None,
                begin_ns => begin_ns.unwrap_or(since_ns),
            };
            let took_ns = now_ns.saturating_sub(begin_ns);
            let [fs, mount] = place(&found.path);
            (took_ns >= LEAST_NS).then(|| SlowOp {
                begin: wall_at(begin_ns),
                took_ns,
                waited: true,
                under_way: true,
                op: OPS.get(found.call.op() as usize).copied().unwrap_or("unknown").into(),
                path: found.path,
                fs,
                mount,
                program: found.program,
                process: found.process,
                thread: found.thread,
                ..SlowOp::default()
            })
        };
        threads_in_operations(processes.clone()).into_iter().filter_map(told).collect()
    }

    /// When it began, if that was seen; 0 where it began with waiting for another's work.
    fn begin_ns(&self, found: &Found) -> Option<u64> {
        let words = self.0.get(&(found.thread % TASKS), 0).ok()?;
        // SAFETY: as large, and integers.
        let begun = unsafe { std::mem::transmute_copy::<_, InFlight>(&words) };
        (begun.tag == tag(found.thread, found.number)).then_some(begun.start_ns)
    }
}

/// Those that tell within [`PATIENCE`]. Asked on a thread of its own, which may hang as they do.
fn threads_in_operations(processes: BTreeSet<u32>) -> Vec<Found> {
    let (tell, told) = channel();
    let ask = move || look(&processes, &tell);
    if thread::Builder::new().name("under-way".into()).spawn(ask).is_err() {
        return Vec::new();
    }
    let until = Instant::now() + PATIENCE;
    let next = || told.recv_timeout(until.saturating_duration_since(Instant::now())).ok();
    std::iter::from_fn(next).collect()
}

fn look(processes: &BTreeSet<u32>, tell: &Sender<Found>) {
    let table = calls::table();
    let threads = processes.iter().flat_map(|process| {
        let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        threads.filter_map(|entry| Some((*process, entry.file_name().to_str()?.parse().ok()?)))
    });
    for (process, thread) in threads.take(MOST) {
        let folder = format!("/proc/{process}/task/{thread}");
        let found = (|| {
            let (number, arguments) =
                parse(&fs::read_to_string(format!("{folder}/syscall")).ok()?)?;
            let call = call_at(&table, number, is_of_32_bits(process))?;
            let is_one = call.is_some() && (!call.is_lock_by_command() || is_lock(arguments[1]));
            let is_one = is_one && !(call.place() == place::OPENED && waits_for_partner(&folder));
            let path = is_one.then(|| path(&folder, call, &arguments)).flatten()?;
            let program = fs::read_to_string(format!("{folder}/comm")).unwrap_or_default();
            let program = program.trim_end_matches('\n').to_owned();
            Some(Found { process, thread, number, call, program, path })
        })();
        if found.is_some_and(|found| tell.send(found).is_err()) {
            return;
        }
    }
}

/// The call with this number; `None` where none has it.
fn call_at(table: &IoCalls, number: u32, is_of_32_bits: bool) -> Option<IoCall> {
    let (of_64, of_32) = table.split_at(OF_32_BITS);
    let table = if is_of_32_bits { of_32 } else { of_64 };
    Some(IoCall(u32::from(*table.get(number as usize)?)))
}

/// Whether the program of `process` is one of 32 bits, whose calls have other numbers. That of a process without one, or
/// which cannot be read, is taken for one of 64 bits.
fn is_of_32_bits(process: u32) -> bool {
    /// The class in the head of an ELF file (elf.h): EI_CLASS, ELFCLASS32.
    const CLASS_AT: usize = 4;
    const OF_32: u8 = 1;
    let mut head = [0; CLASS_AT + 1];
    let read = fs::File::open(format!("/proc/{process}/exe"))
        .and_then(|file| file.read_exact_at(&mut head, 0));
    read.is_ok() && head[CLASS_AT] == OF_32
}

/// Number and arguments of the call that a thread sleeps in, from /proc/PID/syscall.
fn parse(text: &str) -> Option<(u32, [u64; 6])> {
    let mut words = text.split_ascii_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some((number, arguments))
}

/// Whether who opens a named pipe waits for somebody to open its other end. Known by the kernel's function: to ask for
/// the type of what the path leads to may hang, as opening does where a server hangs.
fn waits_for_partner(folder: &str) -> bool {
    fs::read_to_string(format!("{folder}/wchan")).is_ok_and(|function| {
        ["wait_for_partner", "fifo_open"].iter().any(|name| function.starts_with(name))
    })
}

/// What `call` is on; `None` where that is no file: a pipe, a socket, a device.
fn path(folder: &str, call: IoCall, arguments: &[u64; 6]) -> Option<String> {
    let descriptor = |number: u64| {
        let link = fs::read_link(format!("{folder}/fd/{}", number as u32)).ok()?;
        let link = link.to_string_lossy().into_owned();
        (link.starts_with('/') && !link.starts_with("/dev/")).then_some(link)
    };
    match call.place() {
        place::UNKNOWN => Some(String::new()),
        place::FIRST if call.may_be_out_of_pipe() => {
            descriptor(arguments[0]).or_else(|| descriptor(arguments[2]))
        }
        place::FIRST => descriptor(arguments[0]),
        place::SECOND => descriptor(arguments[1]),
        // Taken from the table already.
        place::CLOSED => Some(String::new()),
        _ => {
            let at = usize::from(call.is_at()) + usize::from(call.is_after_text());
            Some(text_at(folder, arguments[at]).unwrap_or_default())
        }
    }
}

/// The text at `address` of the thread's memory.
fn text_at(folder: &str, address: u64) -> Option<String> {
    let mut bytes = [0; PATH_BYTES];
    let memory = fs::File::open(format!("{folder}/mem")).ok()?;
    // A text may end where the memory does.
    let length = memory.read_at(&mut bytes, address).or_else(|_| {
        let to_page = (4096 - address % 4096).min(PATH_BYTES as u64);
        memory.read_at(&mut bytes[..to_page as usize], address)
    });
    let text = &bytes[..length.ok()?];
    let end = text.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&text[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use tracer_ebpf::tables::io::op;

    use super::*;

    #[test]
    fn what_a_thread_sleeps_in_is_read() {
        let text = "262 0xffffff9c 0x7f 0x1 0x0 0x0 0x0 0x7ffd 0x7f12\n";
        assert_eq!(parse(text), Some((262, [0xffff_ff9c, 0x7f, 1, 0, 0, 0])));
        for text in ["running\n", "-1 0x7ffd 0x7f12\n", "", "262 0x1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_program_of_32_bits_has_other_numbers() {
        let table = calls::table();
        let close = libc::SYS_close as u32;
        let op = |is_of_32_bits| call_at(&table, close, is_of_32_bits).map(|call| call.op());
        assert_eq!(op(false), Some(op::CLOSE));
        assert_ne!(op(true), Some(op::CLOSE));
        assert_eq!(call_at(&table, OF_32_BITS as u32, false), None);
        assert!(!is_of_32_bits(std::process::id()));
    }

    #[test]
    fn who_waits_for_the_other_end_of_a_named_pipe_is_in_no_operation() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut reader = std::process::Command::new("cat").arg(&pipe).spawn().unwrap();
        let reads = BTreeSet::from([reader.id()]);
        let until = Instant::now() + Duration::from_secs(20);
        let waits = || waits_for_partner(&format!("/proc/{0}/task/{0}", reader.id()));
        while !waits() {
            assert!(Instant::now() < until, "the kernel says of no function that it waits there");
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(threads_in_operations(reads), []);
        drop(fs::File::options().write(true).open(&pipe).unwrap());
        assert!(reader.wait().unwrap().success());
    }

    #[test]
    fn a_call_is_on_the_file_that_it_names() {
        let folder = "/proc/thread-self";
        let file = fs::File::open("/proc/self/stat").unwrap();
        let first = |number: i32| path(folder, IoCall::new(0, place::FIRST), &[number as u64; 6]);
        let own = format!("/proc/{}/stat", std::process::id());
        assert_eq!(first(file.as_raw_fd()), Some(own));
        let (reader, _writer) = std::io::pipe().unwrap();
        assert_eq!(first(reader.as_raw_fd()), None, "a pipe");
        assert_eq!(first(fs::File::open("/dev/null").unwrap().as_raw_fd()), None, "a device");
        let text = c"/scratch/data";
        let named = [u64::MAX, text.as_ptr() as u64, 0, 0, 0, 0];
        let call = IoCall::new(0, place::PATH).at();
        assert_eq!(path(folder, call, &named).as_deref(), Some("/scratch/data"));
        assert_eq!(path(folder, call, &[0; 6]).as_deref(), Some(""), "none there");
        let link = [0, u64::MAX, text.as_ptr() as u64, 0, 0, 0];
        assert_eq!(path(folder, call.after_text(), &link).as_deref(), Some("/scratch/data"));
        let splice = IoCall::new(0, place::FIRST).out_of_pipe();
        let [from, to] = [reader.as_raw_fd(), file.as_raw_fd()].map(|number| number as u64);
        let own = format!("/proc/{}/stat", std::process::id());
        assert_eq!(path(folder, splice, &[from, 0, to, 0, 1, 0]).as_deref(), Some(&*own));
        assert_eq!(path(folder, splice, &[to, 0, from, 0, 1, 0]), Some(own));
    }
}
