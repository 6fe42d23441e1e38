//! Copies of the agent's records in a folder that a cluster shares. On a thread of its own, because a network file
//! system may hang: lines go on to the server, and another thread says so.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use super::{options::Options, stop::Stop};
use crate::{
    base::{
        clock::wall_ns,
        say::{Level, say_at},
        units::counted,
        values::Time,
    },
    files::publish::cure,
    record::store::{Access, Copied, Mirror},
};

/// Time between two rounds.
const EVERY: Duration = Duration::from_secs(60);
/// A file system that has not answered for so long hangs.
const SILENCE: Duration = Duration::from_secs(30);
/// Time between two looks at whether it does.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The copying.
pub struct Copier {
    mirror: Mirror,
    to: PathBuf,
    max_age: Time,
    stop: Arc<Stop>,
    sign: Arc<Sign>,
    /// What the last round warned of.
    said: BTreeSet<String>,
}

/// When a file was last copied, or the round began; `None` between rounds.
#[derive(Default)]
struct Sign(Mutex<Option<Instant>>);

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
        let max_age = all.records_max_age.unwrap_or(Time(Duration::MAX));
        ensure!(max_age >= Time::seconds(86_400), "--records-max-age must be at least 1 day");
        let access = all.records_access.unwrap_or_default();
        if access == Access::Prepared {
            // The folder's group reads what is made in it.
            rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o027));
        }
        let mirror = Mirror::new(&from, &to, access, max_age.0);
        let (stop, sign, said) = (Arc::clone(stop), Arc::default(), BTreeSet::new());
        Ok(Some(Self { mirror, to, max_age, stop, sign, said }))
    }

    /// Copies once; the exit status.
    ///
    /// # Errors
    /// When there can be no thread that watches.
    pub fn once(mut self) -> Result<u8> {
        self.watch()?;
        match self.round() {
            Ok(copied) => {
                let Copied { records, bytes, removed, old, .. } = copied;
                say_at(
                    Level::Info,
                    format!(
                        "{} ({bytes} bytes) copied to {}, {} removed there",
                        counted(records, "record"),
                        self.to.display(),
                        removed + old
                    ),
                );
                Ok(u8::from(!copied.unprepared.is_empty() || !copied.refused.is_empty()))
            }
            Err(error) => {
                say_at(Level::Error, format!("{error:#}"));
                Ok(1)
            }
        }
    }

    /// Copies what comes, on a thread of its own, until the wish to end.
    ///
    /// # Errors
    /// When there can be no thread.
    pub fn follow(mut self) -> Result<()> {
        self.watch()?;
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

    /// Has a thread say when the folder does not answer, and when it does again.
    fn watch(&self) -> Result<()> {
        let (to, stop, sign) = (self.to.clone(), Arc::clone(&self.stop), Arc::clone(&self.sign));
        let work = move || {
            let mut hangs = false;
            while !stop.sleep(LOOK_EVERY) {
                let hung = hangs;
                hangs = sign.silence() >= SILENCE;
                let (to, s) = (to.display(), SILENCE.as_secs());
                match (hung, hangs) {
                    (false, true) => say_at(
                        Level::Warning,
                        format!(
                            "no record could be copied to {to} for {s} s because a file system does not answer: \
                             check its server; copying goes on when it answers"
                        ),
                    ),
                    (true, false) => {
                        say_at(Level::Notice, format!("copying records to {to} goes on"))
                    }
                    _ => {}
                }
            }
        };
        let thread = thread::Builder::new().name("records-watch".into()).spawn(work);
        thread.map(drop).context("cannot start the thread that watches the copying of records")
    }

    fn round(&mut self) -> Result<Copied> {
        let (stop, sign) = (Arc::clone(&self.stop), Arc::clone(&self.sign));
        sign.set(Some(Instant::now()));
        let copied = self.mirror.round(wall_ns(), || {
            sign.set(Some(Instant::now()));
            !stop.is_set()
        });
        sign.set(None);
        let to = self.to.display();
        let copied = copied.map_err(|error| {
            let message = format!("cannot copy records to {to}: {}", cure(&error));
            anyhow::Error::new(error).context(message)
        })?;
        if copied.old > 0 {
            let (old, max_age) = (counted(copied.old, "record"), self.max_age);
            say_at(Level::Notice, format!("removed {old} older than {max_age} from {to}"));
        }
        let users =
            |users: &BTreeSet<String>| Vec::from_iter(users.iter().map(String::as_str)).join(", ");
        if copied.lacks_lists {
            say_at(
                Level::Warning,
                format!(
                    "the file system of {to} has no access control lists: users cannot read the copies of their \
                     records; set records_access to \"prepared\" or \"open\""
                ),
            );
        }
        let mut warnings = BTreeSet::new();
        if !copied.unprepared.is_empty() {
            let users = users(&copied.unprepared);
            warnings.insert(format!(
                "no folder in {to} for user {users}: their records are not copied until root makes it"
            ));
        }
        if !copied.refused.is_empty() {
            let users = users(&copied.refused);
            warnings.insert(format!(
                "not allowed to write to the folder in {to} of user {users}: their records are not copied until it \
                 belongs to the user that push runs as"
            ));
        }
        // Each once, until it has changed.
        warnings.difference(&self.said).for_each(|warning| say_at(Level::Warning, warning));
        self.said = warnings;
        Ok(copied)
    }
}

impl Sign {
    fn set(&self, sign: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = sign;
    }

    /// For how long there was none.
    fn silence(&self) -> Duration {
        let sign = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sign.map_or(Duration::ZERO, |sign| sign.elapsed())
    }
}
