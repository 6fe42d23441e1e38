//! What stands in a program for calls of the kernel's own functions: numbers of helpers that no kernel has. The agent puts
//! the functions in their place; where the kernel lacks one, no program runs into its call, and the verifier cuts it.

/// `bpf_rdonly_cast`, which gives an address a type (6.2 on).
pub const CAST: i32 = 0x6a63_0001;
/// `bpf_preempt_disable`, which keeps the task on its CPU (6.10 on),
pub const HOLD: i32 = 0x6a63_0002;
/// and `bpf_preempt_enable`, which lets it go.
pub const RELEASE: i32 = 0x6a63_0003;

/// `bpf_iter_task_vma_new`, which begins to go through what a task has mapped (6.7 on),
pub const TO_MAPPINGS: i32 = 0x6a63_0004;
/// `bpf_iter_task_vma_next`, which gives one after another,
pub const NEXT_MAPPING: i32 = 0x6a63_0005;
/// and `bpf_iter_task_vma_destroy`, which ends that.
pub const NO_MORE_MAPPINGS: i32 = 0x6a63_0006;

/// All of them: the function, and what stands for it.
pub const ALL: [(&str, i32); 6] = [
    ("bpf_rdonly_cast", CAST),
    ("bpf_preempt_disable", HOLD),
    ("bpf_preempt_enable", RELEASE),
    ("bpf_iter_task_vma_new", TO_MAPPINGS),
    ("bpf_iter_task_vma_next", NEXT_MAPPING),
    ("bpf_iter_task_vma_destroy", NO_MORE_MAPPINGS),
];
