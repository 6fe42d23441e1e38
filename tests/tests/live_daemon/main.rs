//! Live ring: `jobtrace agent` as a daemon: its intervals, signals, neighbours, sudden deaths and its
//! unit under a real systemd.

mod beside;
mod intervals;
mod killed;
mod last_words;
mod signals;
mod unit;
