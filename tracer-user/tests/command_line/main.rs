//! Process ring: the program itself, as an unprivileged user runs it, on recordings (tests/data).

mod agent;
mod compare;
mod damaged;
mod findings;
mod gpus;
mod lists;
mod outputs;
mod policies;
mod program;
mod progress;
mod repeated;
mod replayed;
mod report;
mod resolve;
mod standard;
mod targets;
mod unprivileged;
mod usage;
