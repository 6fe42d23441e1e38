//! What SIGHUP changes: the keys that count from the next interval on, and those that wait for a
//! restart.

use std::fmt;

use anyhow::{Result, bail};

use super::{Config, Effect, KEYS};

/// The keys in which two configurations differ, and the files besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// They count from the next interval on.
    pub now: Vec<&'static str>,
    /// They count from the next start on.
    pub restart: Vec<&'static str>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.now.as_slice(), self.restart.as_slice()) {
            ([], []) => write!(f, "nothing changed"),
            (now, []) => write!(f, "changed: {}", now.join(", ")),
            ([], restart) => write!(f, "these need a restart: {}", restart.join(", ")),
            (now, restart) => {
                write!(
                    f,
                    "changed: {}; these need a restart: {}",
                    now.join(", "),
                    restart.join(", ")
                )
            }
        }
    }
}

/// In what `new` differs from `old`.
pub fn reload_difference(old: &Config, new: &Config) -> Difference {
    let mut difference = Difference::default();
    for key in KEYS.iter().filter(|key| !key.is_same(old, new)) {
        match key.effect {
            Effect::Reload => difference.now.push(key.path),
            Effect::Restart => difference.restart.push(key.path),
        }
    }
    difference
}

impl Config {
    /// What counts after SIGHUP: `new`, but with this configuration's values for all that needs a
    /// restart.
    ///
    /// # Errors
    /// When the two together are no configuration, such as `spare_slots` above `slots`.
    pub fn reloaded(&self, new: &Self) -> Result<Self> {
        let mut together = new.clone();
        for key in KEYS.iter().filter(|key| key.effect == Effect::Restart) {
            key.copy(self, &mut together);
        }
        match together.problems().as_slice() {
            [] => Ok(together),
            [(path, why), ..] => bail!("`{path}`: {why}"),
        }
    }
}
