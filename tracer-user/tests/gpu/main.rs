//! Sampling GPUs through a driver that answers as told: whose values they are, what each failure costs,
//! and that nobody waits.

mod failures;
mod jobs;
mod look;
mod rig;
mod waits;
