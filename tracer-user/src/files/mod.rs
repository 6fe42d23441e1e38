//! Files that others read: whole under their final name or not there, streams that may block, and what a
//! command line names as the place for an output. Refuses to know what is in them.

pub mod acl;
pub mod feed;
pub mod folder;
pub mod publish;
pub mod target;
