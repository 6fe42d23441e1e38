//! The floor: programs that do nothing, on the hooks that tracers use, attached by this process.
//! Their figures are taken in the same run as the tracer's, since the kernel's statistics add about
//! 50 ns to each run of either.

use super::cases::Kind;
use crate::bpf;
use anyhow::{Context, Result};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const PROG_LOAD: libc::c_int = 5;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const RAW_TRACEPOINT: u32 = 17;

/// `r0 = 0; exit`.
const RETURN_0: [u64; 2] = [0x0000_0000_0000_00b7, 0x0000_0000_0000_0095];

/// A tracepoint that tracers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The kernel's name of it.
    pub name: &'static str,
    /// The family of events that it belongs to.
    pub kind: Kind,
    /// What the names of programs on it have in them; the kernel keeps 15 bytes of a name.
    in_names: &'static str,
}

const fn hook(name: &'static str, kind: Kind, in_names: &'static str) -> Hook {
    Hook { name, kind, in_names }
}

/// The more telling names first: that of `sched_wakeup_new` has the other's in it.
pub const HOOKS: [Hook; 7] = [
    hook("sched_switch", Kind::Switch, "sched_s"),
    hook("sched_wakeup_new", Kind::Switch, "wakeup_n"),
    hook("sched_wakeup", Kind::Switch, "sched_w"),
    hook("page_fault_user", Kind::Fault, "page_fault"),
    hook("block_rq_insert", Kind::Block, "rq_ins"),
    hook("block_rq_issue", Kind::Block, "rq_iss"),
    hook("block_rq_complete", Kind::Block, "rq_comp"),
];

/// The hook of a tracer's program, told by its name.
pub fn hook_of(program: &str) -> Option<Hook> {
    HOOKS.into_iter().find(|hook| program.contains(hook.in_names))
}

/// What else is in names of programs that events of another kind run: no empty program shares their
/// hooks.
const OTHERS: [(&str, Kind); 3] =
    [("fault", Kind::Fault), ("sched_p", Kind::Own), ("cgroup_", Kind::Own)];

/// The kind of events that run a tracer's program, told by its name.
pub fn kind_of(program: &str) -> Option<Kind> {
    let other = || OTHERS.into_iter().find(|(in_names, _)| program.contains(in_names));
    hook_of(program).map(|hook| hook.kind).or_else(|| other().map(|(_, kind)| kind))
}

/// The tracepoint that happens once for each event of the kind.
pub fn counter_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Fault => "page_fault_user",
        Kind::Block => "block_rq_complete",
        Kind::Switch | Kind::Compile | Kind::Compute | Kind::Own => "sched_switch",
    }
}

/// What an empty program has run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Runs {
    /// How often.
    pub count: u64,
    /// How long in all.
    pub time_ns: u64,
}

/// The attached programs; they go with the value.
pub struct Floor {
    attached: Vec<(Hook, OwnedFd, OwnedFd)>,
}

impl Floor {
    /// Attaches an empty program to each of these hooks that this kernel has.
    ///
    /// # Errors
    /// When the kernel refuses the programs, or has none of the hooks.
    pub fn attach(hooks: impl Iterator<Item = Hook>) -> Result<Self> {
        let mut attached = Vec::new();
        for hook in hooks {
            let program = load(hook.name)
                .with_context(|| format!("load an empty program for {}", hook.name))?;
            match open(&program, hook.name) {
                Ok(link) => attached.push((hook, program, link)),
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("attach an empty program to {}", hook.name));
                }
            }
        }
        anyhow::ensure!(!attached.is_empty(), "this kernel has none of the tracepoints");
        Ok(Self { attached })
    }

    /// What each has run so far, with statistics on.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn read_runs(&self) -> Result<Vec<(Hook, Runs)>> {
        let read = |(hook, program, _): &(Hook, OwnedFd, OwnedFd)| {
            let seen = bpf::program(program)?;
            Ok((*hook, Runs { count: seen.run_count, time_ns: seen.run_time_ns }))
        };
        self.attached.iter().map(read).collect()
    }
}

/// `union bpf_attr` of BPF_PROG_LOAD up to `prog_name`.
#[repr(C)]
struct Load {
    kind: u32,
    instructions: u32,
    first_instruction: u64,
    licence: u64,
    log: [u64; 2],
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
}

/// `union bpf_attr` of BPF_RAW_TRACEPOINT_OPEN.
#[repr(C)]
struct Open {
    name: u64,
    program: u32,
    padding: u32,
}

fn load(hook: &str) -> io::Result<OwnedFd> {
    let mut name = [0; 16];
    // The kernel wants a last zero.
    for (byte, from) in name[..15].iter_mut().zip(format!("empty_{hook}").bytes()) {
        *byte = from;
    }
    let mut attr = Load {
        kind: RAW_TRACEPOINT,
        instructions: RETURN_0.len() as u32,
        first_instruction: RETURN_0.as_ptr() as u64,
        licence: c"GPL".as_ptr() as u64,
        log: [0; 2],
        kernel_version: 0,
        flags: 0,
        name,
    };
    call(PROG_LOAD, &mut attr)
}

fn open(program: &OwnedFd, hook: &str) -> io::Result<OwnedFd> {
    let name = std::ffi::CString::new(hook).map_err(io::Error::other)?;
    let mut attr = Open {
        name: name.as_ptr() as u64,
        program: program.as_raw_fd().cast_unsigned(),
        padding: 0,
    };
    call(RAW_TRACEPOINT_OPEN, &mut attr)
}

fn call<T>(command: libc::c_int, attr: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads and writes `size` bytes of `attr` at most, and what the two kinds of
    // it point to outlives the call: constants and `name` in `open`.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attr, size_of::<T>()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(result as libc::c_int) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn layouts_are_the_kernels() {
        assert_eq!(offset_of!(Load, name), 48);
        assert_eq!((size_of::<Load>(), size_of::<Open>()), (64, 16));
    }

    #[test]
    fn programs_are_known_by_their_names() {
        let hook = |name| hook_of(name).map(|hook| hook.name);
        for (program, expected) in [
            ("sched_switch", "sched_switch"),
            ("sched_switch_btf", "sched_switch"),
            ("handle__sched_s", "sched_switch"),
            ("handle__sched_w", "sched_wakeup"),
            ("sched_wakeup", "sched_wakeup"),
            ("sched_wakeup_ne", "sched_wakeup_new"),
            ("block_rq_issue_", "block_rq_issue"),
            ("block_rq_comple", "block_rq_complete"),
            ("page_fault_user", "page_fault_user"),
            ("minor_fault_lat", "none"),
        ] {
            assert_eq!(hook(program).unwrap_or("none"), expected, "{program}");
        }
        assert_eq!(kind_of("minor_fault_lat"), Some(Kind::Fault));
        assert_eq!(kind_of("sched_process_f"), Some(Kind::Own));
        assert_eq!(kind_of("vfs_read"), None);
    }
}
