//! Live ring: the agent with jobs that others made. Each job's numbers agree with the kernel's, are
//! nobody else's, and what is no job's is `_system`'s.

use std::time::Duration;

mod containers;
mod crowds;
mod dive;
mod hostile;
mod life;
mod limits;
mod peaks;
mod programs;
mod records;
mod slots;
mod slurm;
mod slurm_records;
mod still;
mod tasks;
mod times;
mod top;
mod truth;
mod unserved;

use jobtrace_tests::rig::{PATIENCE, shaped};

/// How long something may take that takes a moment.
pub const MOMENT: Duration = PATIENCE;
