//! Live ring: `jobtrace run` as its users meet it. Needs root and writable cgroups.
//!
//! The numbers are looked at elsewhere; here it is statuses, streams, signals, terminals, output and
//! what is left behind.

mod compare;
mod crowds;
mod environment;
mod gone;
mod hostile;
mod killed;
mod namespaces;
mod outputs;
mod program;
mod readers;
mod saved;
mod signals;
mod statuses;
mod terminal;
mod together;
mod top;
mod tty;
