//! The options of the command line that stand above the file: what `keys.rs` calls `flag` and `switch`.

use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::{Config, KEYS, Key};

/// What was given on the command line.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    given: Vec<&'static Key>,
    values: Config,
}

impl Flags {
    /// Puts what was given over `config`.
    pub(super) fn lay_over(&self, config: &mut Config) {
        self.given.iter().for_each(|key| key.copy(&self.values, config));
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        command.args(KEYS.iter().flat_map(|key| &key.flags))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut values = Config::default();
        let given = KEYS.iter().filter(|key| key.take(matches, &mut values)).collect();
        Ok(Self { given, values })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
