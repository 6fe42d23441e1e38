//! Sampling GPUs through a driver that answers as told: whose values they are, what each failure costs,
//! and that nobody waits.

mod cards;
mod detail;
mod failures;
mod jobs;
mod look;
mod parts;
mod rig;
mod waits;
