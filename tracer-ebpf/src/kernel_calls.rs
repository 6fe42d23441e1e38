//! What stands in a program for calls of the kernel's own functions: numbers of helpers that no kernel has. The agent puts
//! the functions in their place; where the kernel lacks one, no program runs into its call, and the verifier cuts it.

/// `bpf_rdonly_cast`, which gives an address a type (6.2 on).
pub const CAST: i32 = 0x6a63_0001;
/// `bpf_preempt_disable`, which keeps the task on its CPU (6.10 on),
pub const HOLD: i32 = 0x6a63_0002;
/// and `bpf_preempt_enable`, which lets it go.
pub const RELEASE: i32 = 0x6a63_0003;

/// All of them: the function, and what stands for it.
pub const ALL: [(&str, i32); 3] =
    [("bpf_rdonly_cast", CAST), ("bpf_preempt_disable", HOLD), ("bpf_preempt_enable", RELEASE)];
