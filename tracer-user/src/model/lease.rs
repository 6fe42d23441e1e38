//! Slots, and the leases by which they are told apart over time.

/// Number of a job slot in the kernel's tables; 0 is the rest of the node.
pub type Slot = u16;

/// A slot while one job has it: never given twice, so that what a slot counted for one job cannot be
/// taken for the next one's. 0 is the rest of the node.
pub type Lease = u32;
