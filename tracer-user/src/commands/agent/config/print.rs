//! The configuration as a commented file, which parses back to the same.

use std::fmt::Write;

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::{Config, KEYS, Shape};
use crate::base::text::wrap;

/// Width of the explanations.
const COLUMNS: usize = 94;

impl Config {
    /// All keys with their values and what they mean.
    ///
    /// # Errors
    /// When a value has no form in TOML, such as a path that is not UTF-8.
    pub fn to_text(&self) -> Result<String> {
        self.render("")
    }

    /// The file that a package installs: all keys with their defaults, commented out.
    ///
    /// # Errors
    /// As [`Config::to_text`].
    pub fn default_file() -> Result<String> {
        let head = "\
# Configuration of `jobtrace agent`. Commented-out values are the defaults.
# Check it with `jobtrace agent --check`; `systemctl reload jobtrace` applies what needs no restart.

";
        Ok(head.to_owned() + &Self::default().render("#")?)
    }

    /// Every key's explanation and value, the value behind `mark`.
    fn render(&self, mark: &str) -> Result<String> {
        let mut blocks = Vec::new();
        let mut table = "";
        for key in KEYS.iter() {
            let mut text = String::new();
            let (parent, name) = key.split();
            let head = match key.shape {
                Shape::Value => parent,
                Shape::Map(_) => key.path,
                // Their heads are part of the entries.
                Shape::Tables(..) => table,
            };
            if head != table {
                let _ = writeln!(text, "[{head}]");
                table = head;
            }
            let about = match key.shape {
                Shape::Value => format!("{} Allowed: {}.", key.help, key.allowed),
                Shape::Map(_) | Shape::Tables(..) => key.help.to_owned(),
            };
            for line in wrap(&about, COLUMNS) {
                let _ = writeln!(text, "# {line}");
            }
            let value = key.value(self)?;
            match key.shape {
                Shape::Value => {
                    let _ = writeln!(text, "{mark}{name} = {value}");
                }
                Shape::Map(example) | Shape::Tables(example, _) => {
                    let own = entries(name, &value)?;
                    text += &own;
                    if own.is_empty() {
                        example.lines().for_each(|line| {
                            let _ = writeln!(text, "#{line}");
                        });
                    }
                }
            }
            blocks.push(text);
        }
        Ok(blocks.join("\n"))
    }
}

/// The entries of a map, or of a list of tables with its heads.
fn entries(name: &str, value: &Value) -> Result<String> {
    let table = match value {
        Value::Table(table) => table.clone(),
        Value::Array(tables) if tables.is_empty() => Table::new(),
        other => Table::from_iter([(name.to_owned(), other.clone())]),
    };
    toml::to_string(&table).context("cannot print the configuration")
}
