//! What every room may use and what needs none of them: clocks, words for people, text, units, values as
//! people write them, and facts of this process and this node.

mod both;
pub mod clock;
pub(crate) mod closed;
pub mod config_file;
pub mod cpus;
pub mod devices;
pub mod directory;
pub mod ending;
pub(crate) mod few;
pub mod identity;
pub mod in_order;
pub mod in_step;
pub mod kept;
pub mod kernel_release;
pub mod layout;
pub mod memory;
pub mod mountinfo;
pub mod mounts;
pub mod notify;
pub mod open_files;
pub mod progress;
pub mod say;
mod spared;
pub mod suggest;
pub mod tag;
pub mod text;
pub mod units;
pub mod values;

pub use both::both;
