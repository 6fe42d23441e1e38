//! What the kernel keeps of jobs: each struct, and the table that names and explains its fields.

pub mod block;
pub mod census;
pub mod fault;
pub mod in_flight;
pub mod io;
pub mod io_ended;
pub mod io_file;
pub mod io_slow;
pub mod io_task;
pub mod job;
pub mod latency;
pub mod net;
pub mod wait;
