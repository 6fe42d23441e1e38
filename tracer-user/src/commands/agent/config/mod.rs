//! /etc/jobtrace/jobtrace.toml. What may be set stands in `keys.rs`, once; what a key may be in `allowed.rs`;
//! reading, printing, comparing and the command line's options lie beside. [`load()`] alone opens a file.

mod allowed;
mod flags;
mod key;
mod keys;
mod load;
mod print;
mod reload;
mod values;

pub use allowed::Shape;
pub use flags::Flags;
pub use key::{Effect, Key};
pub use keys::{Config, ExportKeys, GpuKeys, JobsKeys, KEYS, OverheadKeys, SpoolKeys, StateKeys};
pub use load::{DEFAULT_FILE, load, parse};
pub use reload::{Difference, reload_difference};
pub use values::{CensusMode, JobHierarchy, SoftwareUser, Statistics};

pub use crate::lines::{
    form::LineStyle,
    profile::{BucketStyle, Profile},
};

impl Config {
    /// What is out of its limits: the key's path and why. Empty where all is well.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let of_key =
            |key: &'static Key<Config>| key.problems(self).into_iter().map(|why| (key.path, why));
        KEYS.iter().flat_map(of_key).collect()
    }
}
