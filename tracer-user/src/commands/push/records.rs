//! Copies of the agent's records in a folder that a cluster shares. On a thread of its own, because a network file
//! system may hang: lines go on to the server.

use std::{path::PathBuf, sync::Arc, thread, time::Duration};

use anyhow::{Context, Result, ensure};

use super::{options::Options, stop::Stop};
use crate::{
    base::say::{Level, say_at},
    files::publish::cure,
    record::store::{Access, Copied, Mirror},
};

/// Time between two rounds.
const EVERY: Duration = Duration::from_secs(60);

/// The copying.
pub struct Copier {
    mirror: Mirror,
    to: PathBuf,
    stop: Arc<Stop>,
}

impl Copier {
    /// What `options` ask for; `None` where no copies are wanted.
    ///
    /// # Errors
    /// When something contradicts.
    pub fn new(options: &Options, stop: &Arc<Stop>) -> Result<Option<Self>> {
        let all = options.clone().or(Options::defaults());
        let Some(to) = all.records_to else { return Ok(None) };
        let from = all.records.unwrap_or_default();
        ensure!(from != to, "--records-to is the folder of the agent's records: name another one");
        let access = all.records_access.unwrap_or_default();
        if access == Access::Prepared {
            // The folder's group reads what is made in it.
            rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o027));
        }
        Ok(Some(Self { mirror: Mirror::new(&from, &to, access), to, stop: Arc::clone(stop) }))
    }

    /// Copies once; the exit status.
    pub fn once(mut self) -> u8 {
        match self.round() {
            Ok(copied) => {
                let Copied { records, bytes, removed, .. } = copied;
                say_at(
                    Level::Info,
                    format!(
                        "{records} records ({bytes} bytes) copied to {}, {removed} removed there",
                        self.to.display()
                    ),
                );
                u8::from(!copied.unprepared.is_empty())
            }
            Err(error) => {
                say_at(Level::Error, format!("{error:#}"));
                1
            }
        }
    }

    /// Copies what comes, on a thread of its own, until the wish to end.
    ///
    /// # Errors
    /// When there can be no thread.
    pub fn follow(mut self) -> Result<()> {
        let work = move || {
            let mut told = None;
            loop {
                let error = self.round().err().map(|error| format!("{error:#}"));
                match &error {
                    Some(message) if error != told => say_at(Level::Error, message),
                    None if told.is_some() => say_at(Level::Notice, "records can be copied again"),
                    _ => {}
                }
                told = error;
                if self.stop.sleep(EVERY) {
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name("records".into()).spawn(work);
        thread.map(drop).context("cannot start the thread that copies records")
    }

    fn round(&mut self) -> Result<Copied> {
        let stop = Arc::clone(&self.stop);
        let copied = self.mirror.round(|| !stop.is_set()).map_err(|error| {
            let message = format!("cannot copy records to {}: {}", self.to.display(), cure(&error));
            anyhow::Error::new(error).context(message)
        })?;
        if let Some(remark) = copied.remark {
            say_at(Level::Warning, remark);
        }
        if !copied.unprepared.is_empty() {
            let users = Vec::from_iter(copied.unprepared.iter().map(String::as_str)).join(", ");
            let to = self.to.display();
            say_at(
                Level::Warning,
                format!(
                    "no folder in {to} for user {users}: their records are not copied until root makes it"
                ),
            );
        }
        Ok(copied)
    }
}
