//! The probes: from the running kernel's types to attached programs, and from their maps to
//! snapshots.

mod attach;
mod block_cells;
pub mod btf;
mod clock;
#[doc(hidden)]
pub mod decode;
mod drain;
mod empty;
mod error;
pub(crate) mod events;
mod gap;
mod hooks;
mod id_table;
mod leases;
mod load;
mod log;
mod lookup;
mod maps;
mod memlock;
mod offsets;
pub(crate) mod own;
pub mod pins;
mod place;
mod privileges;
mod programs;
mod rodata;
mod running;
mod slots;
pub mod statistics;
mod take_over;
mod type_ids;
mod unknown;
mod verify;
mod words;

pub use drain::Probes;
pub use empty::hold_empty;
pub use error::LoadError;
pub use events::{Cgroup, Event};
pub use hooks::{FaultMode, HOOKS, Hook, HookState};
pub use load::{Options, load, sample_every};
pub use own::ProgramRuns;
pub use privileges::{check_namespace, cure_of, lacking_capabilities};
pub use rodata::{RODATA, read_global};
pub use take_over::{Carried, take_over};
