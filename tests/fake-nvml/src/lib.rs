//! A `libnvidia-ml.so.1` for tests: it answers what a file beside it says, which a test may replace at
//! any time, fails as told and hangs as told. Never shipped.
//!
//! Each [`Fake`] is a copy of the library in a folder of its own, so that the loader keeps them apart: tests
//! in one process have one driver each. [`Tree`] stands for the kernel's files of other makers' GPUs.

mod driver;
mod events;
mod fields;
mod functions;
mod gpm;
mod lists;
mod parts;
mod place;
mod ring;
pub mod scenario;
mod tree;

pub use place::Fake;
pub use scenario::{Gpm, Gpu, Process, Scenario, Turns};
pub use tree::Tree;
