//! What SIGHUP changes: the keys that count from the next interval on, and those that wait for a
//! restart.

use std::fmt;

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::{
    Config,
    keys::{Effect, KEYS},
    print::find,
};

/// The keys in which two configurations differ.
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
///
/// # Errors
/// When one of them has no form in TOML.
pub fn reload_difference(old: &Config, new: &Config) -> Result<Difference> {
    let (old, new) = (as_table(old)?, as_table(new)?);
    let mut difference = Difference::default();
    for key in KEYS.iter().filter(|key| find(&old, key.path) != find(&new, key.path)) {
        match key.effect {
            Effect::Reload => difference.now.push(key.path),
            Effect::Restart => difference.restart.push(key.path),
        }
    }
    Ok(difference)
}

impl Config {
    /// What counts after SIGHUP: `new`, but with this configuration's values for all that needs a
    /// restart.
    ///
    /// # Errors
    /// When the two together are no configuration, such as `spare_slots` above `slots`.
    pub fn reloaded(&self, new: &Self) -> Result<Self> {
        let old = as_table(self)?;
        let mut table = as_table(new)?;
        for key in KEYS.iter().filter(|key| key.effect == Effect::Restart) {
            if let Some(value) = find(&old, key.path) {
                put(&mut table, key.path, value.clone());
            }
        }
        let together: Self = table.try_into().context("cannot join old and new configuration")?;
        match together.problems().as_slice() {
            [] => Ok(together),
            [(path, why), ..] => anyhow::bail!("`{path}`: {why}"),
        }
    }
}

fn as_table(config: &Config) -> Result<Table> {
    Table::try_from(config).context("cannot compare the configurations")
}

fn put(table: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        Some((first, rest)) => {
            if let Some(Value::Table(inner)) = table.get_mut(first) {
                put(inner, rest, value);
            }
        }
        None => {
            table.insert(path.to_owned(), value);
        }
    }
}
