//! GPUs: what the devices and the processes on them do, read once a second, and which job that was.
//!
//! A thread of its own asks each source (`work`, `source`: `nvml` for NVIDIA's, `cards` for all others),
//! since a call may block for long, and adds each [`GpuReading`] to the [`Totals`] of the jobs; whoever
//! drains the kernel takes the totals and waits for nothing. Beside each reading it lays what the job's
//! tasks did (`tasks`, `waits`), which tells why a device was idle (`idle`, `sleepers`). Refuses to tell which job a process is
//! of: that is an argument.

pub(crate) mod cards;
mod claim;
mod detail;
mod energy;
mod failure;
mod idle;
mod job;
mod look;
pub(crate) mod member;
mod nvml;
mod reading;
mod sampler;
mod shared;
mod sleepers;
mod source;
mod tasks;
mod totals;
mod used;
mod waits;
mod work;

pub use cards::FoundCard;
pub use claim::{Claim, Claims, Holder};
pub use look::{FoundGpus, NoAnswer, look, look_at_cards};
pub use member::is_inside;
pub use reading::{
    Activity, Busy, Counters, Device, DeviceReading, GpuReading, ProcessReading, Throttled, Traffic,
};
pub use sampler::{Ending, Sampler, SamplerCost};
pub use shared::SamplerSettings;
pub use totals::Totals;
