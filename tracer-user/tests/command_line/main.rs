//! Process ring: the program itself, as an unprivileged user runs it, on recordings (tests/data).

mod agent;
mod compare;
mod damaged;
mod dive;
mod findings;
mod gpus;
mod lists;
mod names;
mod outputs;
mod policies;
mod program;
mod progress;
mod repeated;
mod replayed;
mod report;
mod resolve;
mod software;
mod standard;
mod sums;
mod targets;
mod unprivileged;
mod usage;
