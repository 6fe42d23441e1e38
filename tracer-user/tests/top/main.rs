//! `jobtrace top` on a terminal of some size, as a terminal emulator shows it, with an agent's socket that tells of
//! jobs made here; and what it prints without a terminal.

mod agent;
mod gone;
mod plain;
#[allow(dead_code, reason = "the tests of `launch` use the rest")]
#[path = "../launch/terminal.rs"]
mod terminal;
mod view;
mod watched;
