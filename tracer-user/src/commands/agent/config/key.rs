//! A key of the configuration, whatever its type: what the list in `keys.rs` says of it, and how its value
//! is judged, compared, copied, printed and taken from the command line.

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, builder::ValueParser, parser::ValueSource};
use serde::Serialize;
use toml::Value;

use super::{
    Config,
    allowed::{Allowed, Shape},
};

/// When a changed key counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// From the next interval after SIGHUP.
    Reload,
    /// From the agent's next start: it shapes maps, series or files that are there already.
    Restart,
}

/// A key.
pub struct Key {
    /// Where it stands: `spool.dir`.
    pub path: &'static str,
    /// What it means.
    pub help: &'static str,
    /// What it may be.
    pub allowed: String,
    /// When a change counts.
    pub effect: Effect,
    /// What it holds.
    pub shape: Shape,
    /// The options of the command line that stand above the file.
    pub flags: Vec<Arg>,
    value: Box<dyn AnyValue>,
}

impl Key {
    /// Of a value that `get` finds; every row of `keys.rs` is one.
    pub(super) fn new<T>(
        path: &'static str,
        help: &'static str,
        effect: Effect,
        allowed: Allowed<T>,
        get: fn(&Config) -> &T,
        get_mut: fn(&mut Config) -> &mut T,
    ) -> Self
    where
        T: Clone + PartialEq + Serialize + Send + Sync + 'static,
    {
        let Allowed { words, shape, problems } = allowed;
        let value = Box::new(TypedValue { get, get_mut, problems });
        let help = help.trim_start();
        Self { path, help, allowed: words, effect, shape, flags: Vec::new(), value }
    }

    /// An option of the command line with a value.
    pub(super) fn flag(
        mut self,
        long: &'static str,
        value_name: &'static str,
        help: &'static str,
        parser: impl Into<ValueParser>,
    ) -> Self {
        let arg = Arg::new(long).long(long).value_name(value_name).help(help);
        self.flags.push(arg.value_parser(parser));
        self
    }

    /// Two options of the command line for yes and no; the last one given counts.
    pub(super) fn switch(
        mut self,
        (on, on_help): (&'static str, &'static str),
        (off, off_help): (&'static str, &'static str),
    ) -> Self {
        let yes = Arg::new(on).long(on).help(on_help).action(ArgAction::SetTrue);
        let no = Arg::new(off).long(off).help(off_help).action(ArgAction::SetFalse);
        self.flags.extend([yes.overrides_with(off), no.overrides_with(on)]);
        self
    }

    /// The table it is in, empty for the top, and its name there.
    pub fn split(&self) -> (&'static str, &'static str) {
        self.path.rsplit_once('.').unwrap_or(("", self.path))
    }

    /// What is wrong with its value in `config`.
    pub fn problems(&self, config: &Config) -> Vec<String> {
        self.value.problems(config)
    }

    /// Whether `one` and `other` agree in it.
    pub fn is_same(&self, one: &Config, other: &Config) -> bool {
        self.value.is_same(one, other)
    }

    /// Gives `to` the value that `from` has.
    pub fn copy(&self, from: &Config, to: &mut Config) {
        self.value.copy(from, to);
    }

    /// Its value in `config` as the file has it.
    ///
    /// # Errors
    /// When it has no form in TOML, such as a path that is not UTF-8.
    pub fn value(&self, config: &Config) -> Result<Value> {
        self.value.to_toml(config).with_context(|| format!("cannot print `{}`", self.path))
    }

    /// Gives `config` what the command line says; whether it says anything.
    pub(super) fn take(&self, matches: &ArgMatches, config: &mut Config) -> bool {
        let is_given = |flag: &&Arg| {
            matches.value_source(flag.get_id().as_str()) == Some(ValueSource::CommandLine)
        };
        let given = self.flags.iter().find(is_given);
        given.is_some_and(|flag| self.value.take(matches, flag.get_id().as_str(), config))
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.path)
    }
}

/// The value of one key in a configuration, its type forgotten.
trait AnyValue: Send + Sync {
    fn problems(&self, config: &Config) -> Vec<String>;
    fn is_same(&self, one: &Config, other: &Config) -> bool;
    fn copy(&self, from: &Config, to: &mut Config);
    fn to_toml(&self, config: &Config) -> Result<Value, toml::ser::Error>;
    fn take(&self, matches: &ArgMatches, id: &str, config: &mut Config) -> bool;
}

struct TypedValue<T: 'static> {
    get: fn(&Config) -> &T,
    get_mut: fn(&mut Config) -> &mut T,
    problems: super::allowed::Problems<T>,
}

impl<T> AnyValue for TypedValue<T>
where
    T: Clone + PartialEq + Serialize + Send + Sync + 'static,
{
    fn problems(&self, config: &Config) -> Vec<String> {
        (self.problems)((self.get)(config), config)
    }

    fn is_same(&self, one: &Config, other: &Config) -> bool {
        (self.get)(one) == (self.get)(other)
    }

    fn copy(&self, from: &Config, to: &mut Config) {
        (self.get_mut)(to).clone_from((self.get)(from));
    }

    fn to_toml(&self, config: &Config) -> Result<Value, toml::ser::Error> {
        Value::try_from((self.get)(config))
    }

    fn take(&self, matches: &ArgMatches, id: &str, config: &mut Config) -> bool {
        let given = matches.get_one::<T>(id);
        given.iter().for_each(|value| (self.get_mut)(config).clone_from(value));
        given.is_some()
    }
}
