//! The agent's spool: what appears in the outbox, what survives a crash, what is dropped.

mod crashes;
mod folder;
mod limits;
mod trouble;
