//! The operations that took longest, as each CPU keeps them.

use anyhow::{Context, Result};
use aya::maps::{MapData, PerCpuArray};
use tracer_ebpf::{
    io_calls::IoCall,
    tables::{
        io::OPS,
        io_slow::{self, NO_OFFSET, SlowOps, named},
    },
};

use super::{errors::name_of, files::path_of};
use crate::{
    base::clock::boot_wall_ns,
    bpf::maps::TakeMap,
    model::slow_ops::{SlowOp, longest},
};

/// Words of what a CPU keeps.
const WORDS: usize = size_of::<SlowOps>() / 8;
/// How often what changes while it is read is read anew.
const TRIES: usize = 3;

/// The map, and what was read of it.
pub struct Slowest {
    map: PerCpuArray<MapData, [u64; WORDS]>,
    /// When CLOCK_MONOTONIC was zero, by the clock as it was set when the counting began: a clock that is set later moves no
    /// operation to before or after the time that was counted.
    boot_ns: u64,
    /// Of each CPU what was read last and whole.
    kept: Vec<Vec<io_slow::SlowOp>>,
}

impl Slowest {
    /// Of loaded programs.
    ///
    /// # Errors
    /// When the map is missing or of another kind.
    pub fn new(take: &mut TakeMap<'_>) -> Result<Self> {
        let map = take("SLOW_OPS")?.try_into().context("map SLOW_OPS")?;
        Ok(Self { map, boot_ns: boot_wall_ns(), kept: Vec::new() })
    }

    /// Takes what is kept now.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn read(&mut self) -> Result<()> {
        for _ in 0..TRIES {
            let cpus = self.map.get(&0, 0).context("cannot read the slowest operations")?;
            self.kept.resize(cpus.len(), Vec::new());
            let mut is_whole = true;
            for (words, kept) in cpus.iter().zip(&mut self.kept) {
                match ops_of(words) {
                    Some(ops) => *kept = ops,
                    None => is_whole = false,
                }
            }
            if is_whole {
                break;
            }
        }
        Ok(())
    }

    /// The longest of all CPUs; `place` tells of a file system its type and mount, as they are written, and of a path in
    /// it where that is now.
    pub fn longest(&self, mut place: impl FnMut(u32, &str) -> [String; 3]) -> Vec<SlowOp> {
        let kept = self.kept.iter().flatten();
        longest(kept.map(|op| told(op, self.boot_ns, &mut place)).collect())
    }
}

/// What a CPU keeps; `None` while it changes.
fn ops_of(words: &[u64; WORDS]) -> Option<Vec<io_slow::SlowOp>> {
    // SAFETY: as large, and integers.
    let all = unsafe { std::mem::transmute_copy::<[u64; WORDS], SlowOps>(words) };
    let is_whole = all.changed == all.changing;
    is_whole.then(|| all.ops.iter().filter(|op| op.took_ns > 0).copied().collect())
}

fn told(
    op: &io_slow::SlowOp,
    boot_ns: u64,
    place: &mut impl FnMut(u32, &str) -> [String; 3],
) -> SlowOp {
    let (call, moved) = (IoCall(op.call), u64::try_from(op.result).ok());
    let inner = match op.named {
        named::FILE => path_of(op.file, Some(&op.name)),
        named::NOT if op.file.inode != 0 => path_of(op.file, None),
        _ => String::new(),
    };
    let [fs, mount, full] = place(op.file.device, &inner);
    let path = match op.named {
        named::PATH => text(&op.name.bytes),
        _ if inner.is_empty() => String::new(),
        _ => full,
    };
    SlowOp {
        begin: boot_ns + op.ended_ns.saturating_sub(op.took_ns),
        took_ns: op.took_ns,
        waited: op.has_waited != 0,
        under_way: false,
        op: OPS.get(call.op() as usize).copied().unwrap_or("unknown").into(),
        path,
        fs,
        mount,
        offset: Some(op.offset).filter(|offset| *offset != NO_OFFSET),
        bytes: moved.filter(|_| call.is_moving()),
        error: u16::try_from(op.result.saturating_neg())
            .ok()
            .filter(|error| *error > 0)
            .map(name_of),
        program: text(&op.program),
        process: op.process,
        thread: op.thread,
        host: String::new(),
    }
}

/// The text before the first zero.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use tracer_ebpf::{
        io_calls::place,
        tables::{
            io::op,
            io_file::{FileId, FileName},
        },
    };

    use super::*;

    fn slow(call: IoCall, result: i64, named: u32, name: &[u8]) -> io_slow::SlowOp {
        let mut bytes = [0; 252];
        bytes[..name.len()].copy_from_slice(name);
        let mut program = [0; 16];
        program[..6].copy_from_slice(b"wri\x1bte");
        io_slow::SlowOp {
            ended_ns: 9,
            took_ns: 5,
            offset: NO_OFFSET,
            result,
            file: FileId { device: 7, generation: 0, inode: 0 },
            thread: 12,
            process: 11,
            call: call.0,
            has_waited: 1,
            program,
            named,
            _pad: 0,
            name: FileName { length: name.len() as u32, bytes },
        }
    }

    fn of(op: &io_slow::SlowOp) -> SlowOp {
        told(op, 1_000, &mut |device, path| {
            ["ext4".into(), format!("/{device}"), format!("/m{path}")]
        })
    }

    #[test]
    fn an_operation_is_told_with_its_file_or_its_path() {
        let write = IoCall::new(op::WRITE, place::FIRST).moves();
        let mut at = slow(write, 4096, named::FILE, b"b\0a\0/\0");
        (at.offset, at.file.inode) = (8192, 3);
        let told = of(&at);
        assert_eq!((&*told.op, &*told.path, &*told.mount), ("write", "/m/a/b", "/7"));
        assert_eq!((told.offset, told.bytes, told.error), (Some(8192), Some(4096), None));
        assert_eq!((&*told.program, told.process, told.thread), ("wri\x1bte", 11, 12));
        assert!(told.waited && told.took_ns == 5 && told.begin == 1_004);
        let open = IoCall::new(op::OPEN, place::OPENED);
        let told = of(&slow(open, -2, named::PATH, b"../lib/x.so\0"));
        assert_eq!((&*told.op, &*told.path, told.bytes), ("open", "../lib/x.so", None));
        assert_eq!((told.offset, told.error.as_deref()), (None, Some("ENOENT")));
        let mut closed = slow(IoCall::new(op::CLOSE, place::CLOSED), 0, named::NOT, b"");
        assert_eq!(of(&closed).path, "", "sync has none");
        closed.file.inode = 77;
        assert_eq!(of(&closed).path, "/m…/inode 77");
    }

    #[test]
    fn what_changes_while_it_is_read_is_not_taken() {
        let mut words = [0; WORDS];
        assert_eq!(ops_of(&words).map(|ops| ops.len()), Some(0), "none is kept yet");
        words[WORDS - 1] = 1;
        assert!(ops_of(&words).is_none());
        words[0] = 1;
        assert!(ops_of(&words).is_some());
    }
}
