//! Process ring: the program itself, as an unprivileged user runs it, on recordings (tests/data).

mod damaged;
mod outputs;
mod program;
mod replayed;
mod resolve;
mod unprivileged;
mod usage;
