//! The probes: from the running kernel's types to attached programs, and from their maps to
//! snapshots.

pub mod btf;
mod clock;
mod decode;
mod drain;
mod empty;
mod hooks;
mod load;
mod maps;
mod memlock;
mod own;

pub use drain::Probes;
pub use empty::hold_empty;
pub use hooks::{FaultMode, HOOKS, Hook, HookState};
pub use load::{Layout, LoadError, MINOR_LATENCY_EVERY, Options, load};
