//! Sampling GPUs through a driver that answers as told: whose values they are, what each failure costs,
//! and that nobody waits.

mod cards;
mod clients;
mod detail;
mod failures;
mod jobs;
mod lists;
mod look;
mod opening;
mod parts;
mod references;
mod rig;
mod utilization;
mod waits;
