//! The programs that always run: what they are set to, their maps and the snapshots of these. How programs
//! come into the kernel is `bpf`'s matter.

mod added_up;
mod bank;
mod banks;
mod block_cells;
mod blocks;
mod calls;
mod cells;
mod census;
mod clock;
#[doc(hidden)]
pub mod decode;
mod development;
mod drain;
mod empty;
pub(crate) mod events;
mod families;
mod gap;
mod globals;
mod hooks;
mod id_table;
mod leases;
mod load;
pub mod moves;
mod needs;
mod options;
mod own;
mod place;
mod readings;
mod records;
mod removed;
mod running;
#[doc(hidden)]
pub mod slot_sum;
mod slots;
mod take_over;
mod unknown;
mod waits;

pub use census::{CENSUS_HOOKS, Census, Room, Wake};
pub use development::development;
pub use drain::Probes;
pub use empty::hold_empty;
pub use events::{Cgroup, Event};
pub use families::{EventCount, FAMILIES, Family, FamilyRow};
pub(crate) use globals::globals;
pub use hooks::{HOOKS, HookRow};
pub use load::load;
pub use needs::CAUSES;
pub use options::{FaultMode, Options, WaitMode};
pub use take_over::{Carried, take_over};
