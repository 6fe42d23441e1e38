//! Other settings while the agent runs.

use anyhow::Result;

use super::{
    Agent, Sources,
    start::{seconds, settings},
};
use crate::{
    base::{
        clock::{monotonic_ns, wall_ns},
        say::Level,
    },
    census,
    commands::agent::{
        config::{self, Difference},
        software::SoftwareSettings,
    },
};

impl Agent {
    /// Takes over what has changed in the configuration, or says why not.
    pub(super) fn reload(&mut self, sources: &Sources) {
        // The last of them says which one is in effect.
        match self.reloaded(sources) {
            Ok(difference) => {
                self.log.each(Level::Notice, format_args!("configuration reloaded: {difference}"));
            }
            Err(error) => self.log.each(
                Level::Error,
                format_args!("configuration not reloaded, the old one stays in effect: {error:#}"),
            ),
        }
    }

    fn reloaded(&mut self, sources: &Sources) -> Result<Difference> {
        let new = config::load(sources.file.as_deref(), &sources.flags)?;
        let mut difference = config::reload_difference(&self.config, &new);
        let together = self.config.reloaded(&new)?;
        let (settings, software) = (settings(&together)?, SoftwareSettings::of(&together)?);
        if self.node.set_software(software)? {
            difference.now.push(census::DEFAULT_FILE);
        }
        self.node.set(settings, &self.log);
        self.output.reload(&together);
        self.grid.set_interval(seconds(&together)?, wall_ns(), monotonic_ns());
        self.config = together;
        Ok(difference)
    }
}
