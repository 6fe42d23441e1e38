//! GPUs: what the devices and the processes on them do, read once a second, and which job that was.
//!
//! A thread of its own asks each source (`work`, `source`: `nvml` for NVIDIA's, `cards` for all others),
//! since a call may block for long, and adds each [`Reading`] to the [`Totals`] of the jobs; whoever
//! drains the kernel takes the totals and waits for nothing. Refuses to tell which job a process is of:
//! that is an argument.

mod detail;
mod failure;
mod look;
pub(crate) mod member;
mod nvml;
mod reading;
mod sampler;
mod source;
mod totals;
mod work;

pub use look::{Found, look};
pub use member::is_inside;
pub use reading::{Activity, Busy, Device, DeviceReading, ProcessReading, Reading, Throttled};
pub use sampler::{Sampler, Settings};
pub use totals::Totals;
