//! What stands in a program for the kernel's own function that gives an address a type.

/// Number of a helper that no kernel has. The agent puts `bpf_rdonly_cast` in its place; where the kernel lacks that, no
/// program runs into the call, and the verifier cuts it.
pub const CALL_MARK: i32 = 0x6a63_0001;
