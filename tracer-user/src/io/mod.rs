//! The deep dive into one job's I/O, on request: each operation on files, counted and timed where its system call
//! begins and returns, by an object of its own. Nothing of it is in the kernel otherwise
//! ([0029](../docs/decisions/0029-io.md)).

mod calls;
mod errors;
mod files;
mod hooks;
mod known;
mod load;
mod mounts;
mod read;
mod slowest;
mod threads;

pub use load::{Whose, load};
pub use read::Io;
