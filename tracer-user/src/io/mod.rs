//! The deep dive into one job's I/O, on request: each operation on files, counted and timed where its system call
//! begins and returns, by an object of its own. Nothing of it is in the kernel otherwise
//! ([0029](../docs/decisions/0029-io.md)).

mod calls;
mod cells;
mod errors;
mod files;
mod hooks;
mod known;
mod lacking;
mod llite;
mod load;
mod missing;
mod mounts;
mod mountstats;
mod read;
mod servers;
mod slowest;
mod threads;
mod under_way;

use tracer_ebpf::handle::{Handle, Number};

use crate::model::tables::NodeMount;

pub use load::{Whose, load};
pub use read::{EARLY, Io};

/// What is known of requests to file servers, in the order in which the readers of the kernel's texts give it.
const FIELDS: [Handle<Number>; 9] = [
    NodeMount::ops,
    NodeMount::errors,
    NodeMount::retransmits,
    NodeMount::timeouts,
    NodeMount::sent_bytes,
    NodeMount::received_bytes,
    NodeMount::queue_ns,
    NodeMount::round_trip_ns,
    NodeMount::time_ns,
];
