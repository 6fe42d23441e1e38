//! Process ring: `jobtrace push` against a server that answers well, badly, late and not at all.

mod answers;
mod consumers;
mod copies;
mod failures;
mod files;
mod follow;
mod killed;
mod laws;
mod server;
mod settings;
mod spool;
mod telegraf;
mod tls;
