//! The commands, each with its own arguments. None uses another's; what two of them need lies in a room
//! below.

pub mod agent;
pub mod compare;
pub mod doctor;
pub mod findings;
pub mod io;
pub mod jobs;
pub mod push;
pub mod report;
pub mod resolve;
pub mod run;
pub mod software;
pub mod top;
pub mod usage;
