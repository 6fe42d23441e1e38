//! What the live ring shares: running the real program, reading what the kernel says of the same
//! work, comparing the two, and the work itself (`src/bin`).

pub mod account;
pub mod agent;
pub mod agree;
pub mod causes;
pub mod daemon;
pub mod disk;
pub mod findings;
pub mod io_account;
pub mod operations;
pub mod own_cgroup;
pub mod pages;
pub mod probed;
pub mod rig;
pub mod sharing;
pub mod sibling;
pub mod soak;
pub mod stalls;
pub mod strace;
pub mod traced;
pub mod turns;
pub mod uring;
pub mod work;
