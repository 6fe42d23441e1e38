//! The order of events: which file next, when again, what is said.

use std::{
    collections::{HashSet, VecDeque},
    io,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, anyhow};
use bytesize::ByteSize;

use super::{
    back_off,
    batches::Batches,
    client::Client,
    file::{self, End},
    options::PushSettings,
    outbox::{Outbox, Waiting},
    reason::{self, Refusal},
    stop::Stop,
    totals::SentTotals,
};
use crate::base::{
    notify::Notify,
    say::{Level, print, say_at},
    text::clean,
    units::counted,
};

/// Between two words of progress.
const PROGRESS: Duration = Duration::from_secs(10);
/// Between two words of the same trouble.
const SAME_TROUBLE: Duration = Duration::from_secs(600);

/// A server, a spool, and how far we are.
#[derive(Debug)]
pub struct Session {
    settings: PushSettings,
    client: Client,
    outbox: Outbox,
    stop: Arc<Stop>,
    follow: bool,
    /// Bytes of text in a request; a server that finds them too many lowers it.
    limit: usize,
    totals: SentTotals,
    trouble: Option<Trouble>,
    /// Files that cannot be read, told once.
    unreadable: HashSet<String>,
}

/// Attempts that failed, in a row.
#[derive(Debug)]
struct Trouble {
    failures: u32,
    since: Instant,
    told: Instant,
    words: String,
}

/// What comes after a file.
enum Next {
    Go,
    /// The same file again, after that time.
    Again(Duration),
    GiveUp,
}

impl Session {
    /// Sends nothing yet.
    pub fn new(
        settings: PushSettings,
        client: Client,
        outbox: Outbox,
        stop: Arc<Stop>,
        follow: bool,
    ) -> Self {
        Self {
            limit: settings.max_body,
            totals: SentTotals::default(),
            trouble: None,
            unreadable: HashSet::new(),
            settings,
            client,
            outbox,
            stop,
            follow,
        }
    }

    /// Whether it goes on when all is sent.
    pub fn follows(&self) -> bool {
        self.follow
    }

    /// Works until all is sent, or with `follow` until told to stop; the exit status.
    ///
    /// # Errors
    /// When the server refuses us, or the spool cannot be read or let go of.
    pub fn run(mut self) -> Result<u8> {
        let (begin, notify) = (Instant::now(), Notify::from_environment());
        let (from, to) = (self.outbox.files(), self.settings.url.clone());
        let what = format!("sending the files of {} to {to}", from.display());
        say_at(Level::Info, &what);
        notify.ready(&what);
        loop {
            let waiting = self.outbox.list()?;
            self.round(waiting)?;
            notify.status(&self.totals.status());
            if !self.follow || self.stop.sleep(self.settings.every) {
                break;
            }
        }
        say_at(Level::Info, self.totals.summary(begin.elapsed()));
        let is_short = self.totals.refused > 0 || self.totals.stayed > 0;
        Ok(u8::from(is_short && !self.follow))
    }

    /// Sends what was found, each until it is done, stays, or the session ends.
    fn round(&mut self, found: Vec<Waiting>) -> Result<()> {
        let (all, mut told) = (found.len(), Instant::now());
        let mut queue = VecDeque::from(found);
        self.totals.stayed = 0;
        while let Some(file) = queue.pop_front() {
            let next = if self.stop.is_set() { Next::GiveUp } else { self.one(&file.name)? };
            match next {
                Next::Go => {}
                Next::Again(wait) => {
                    // Behind the others: one that makes a server fail is not to hold them up.
                    queue.push_back(file);
                    self.stop.sleep(wait);
                }
                Next::GiveUp => {
                    self.totals.stayed += queue.len() as u64 + 1;
                    return Ok(());
                }
            }
            if told.elapsed() >= PROGRESS && self.trouble.is_none() {
                told = Instant::now();
                let done = all - queue.len();
                let size = ByteSize(self.totals.bytes);
                say_at(
                    Level::Info,
                    format_args!("{done} of {} done, {size} sent", counted(all as u64, "file")),
                );
            }
        }
        Ok(())
    }

    fn one(&mut self, name: &str) -> Result<Next> {
        let api = self.settings.api;
        let opened = self.outbox.open(name);
        let sent = match opened {
            Ok(None) => {
                self.totals.gone += 1;
                return Ok(Next::Go);
            }
            Ok(Some(text)) => {
                file::send(text, &mut self.limit, api, |lines| self.client.post(lines))
            }
            Err(error) => Err(error),
        };
        let (end, sent) = match sent {
            Ok(done) => done,
            Err(error) => {
                self.totals.stayed += 1;
                if self.unreadable.insert(name.to_owned()) {
                    let what = format_args!("cannot read {name}, which stays where it is: {error}");
                    say_at(Level::Warning, what);
                }
                return Ok(Next::Go);
            }
        };
        self.totals.add(sent);
        match end {
            End::Taken => self.let_go(name)?,
            End::Refused(refusals) => self.refused(name, &refusals)?,
            End::Later(why, wish) => return Ok(self.later(why, wish)),
            End::Stop(why) => {
                return Err(anyhow!("{why} ({})", self.settings.url)
                    .context("nothing can be sent, and all files stay where they are"));
            }
        }
        if let Some(trouble) = self.trouble.take() {
            let time = trouble.since.elapsed().as_secs_f64();
            say_at(
                Level::Notice,
                format_args!("the server accepts lines again, after {time:.1} s"),
            );
        }
        Ok(Next::Go)
    }

    fn let_go(&mut self, name: &str) -> Result<()> {
        let removed = self.outbox.remove(name).with_context(|| {
            format!(
                "cannot remove {name}, which has been sent, from {}",
                self.outbox.files().display()
            )
        })?;
        // Dropped by the agent while it was sent: sent all the same.
        let _ = removed;
        self.totals.files += 1;
        Ok(())
    }

    fn refused(&mut self, name: &str, refusals: &[Refusal]) -> Result<()> {
        let when = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let text = reason::text(name, &self.settings.url, &when, refusals);
        let failed = self.outbox.failed();
        let moved = self.outbox.fail(name, &text);
        let moved = moved.with_context(|| {
            format!("cannot move {name}, which the server refused, to {}", failed.display())
        })?;
        if !moved {
            self.totals.gone += 1;
            return Ok(());
        }
        self.totals.refused += 1;
        let why = reason::first(refusals);
        say_at(Level::Warning, format_args!("{name} moved to {}: {why}", failed.display()));
        let pruned =
            self.outbox.prune().with_context(|| format!("cannot clean up {}", failed.display()))?;
        if pruned.files > 0 {
            let (files, size) = (counted(pruned.files, "refused file"), ByteSize(pruned.bytes));
            let what = format_args!(
                "{files} ({size}), the oldest, deleted to stay within --failed-max-bytes"
            );
            say_at(Level::Warning, what);
        }
        Ok(())
    }

    /// After an attempt that may succeed later.
    fn later(&mut self, why: String, wish: Option<Duration>) -> Next {
        let now = Instant::now();
        let trouble = self.trouble.get_or_insert_with(|| Trouble {
            failures: 0,
            since: now,
            told: now,
            words: String::new(),
        });
        trouble.failures = trouble.failures.saturating_add(1);
        let gives_up = !self.follow && trouble.failures >= self.settings.retries.max(1);
        let wait = back_off::wait(trouble.failures, wish, back_off::dice());
        if !self.follow || trouble.words != why || trouble.told.elapsed() >= SAME_TROUBLE {
            let then = if gives_up {
                format!("given up after {}", counted(trouble.failures.into(), "attempt"))
            } else {
                format!("next attempt in {:.1} s", wait.as_secs_f64())
            };
            say_at(Level::Warning, format_args!("{why}: files stay; {then}"));
            (trouble.told, trouble.words) = (now, why);
        }
        if gives_up { Next::GiveUp } else { Next::Again(wait) }
    }
}

/// Tells what would be sent; the exit status. Nothing is moved and no server asked.
///
/// # Errors
/// When the spool cannot be read.
pub fn dry_run(settings: &PushSettings, outbox: &Outbox) -> Result<u8> {
    let (mut totals, mut is_well) = (SentTotals::default(), true);
    for Waiting { name, .. } in outbox.list()? {
        let line = match measure(outbox, &name, settings.max_body) {
            Ok(Some(sent)) => {
                totals.files += 1;
                totals.add(sent);
                let (lines, requests) =
                    (counted(sent.lines, "line"), counted(sent.requests, "request"));
                format!("{name}  {lines}, {}, {requests}", ByteSize(sent.bytes))
            }
            Ok(None) => continue,
            Err(error) => {
                is_well = false;
                format!("{name}  incomplete or unreadable: {error}")
            }
        };
        print(&format!("{}\n", clean(&line, true)))?;
    }
    let (files, size) = (counted(totals.files, "file"), ByteSize(totals.bytes));
    let lines = counted(totals.lines, "line");
    print(&format!("would send {files}, {lines}, {size}, to {}\n", settings.url))?;
    Ok(u8::from(!is_well))
}

/// What a file holds.
fn measure(outbox: &Outbox, name: &str, limit: usize) -> io::Result<Option<file::Sent>> {
    let Some(text) = outbox.open(name)? else { return Ok(None) };
    let (mut batches, mut sent) = (Batches::new(text), file::Sent::default());
    while let Some(batch) = batches.next(limit)? {
        sent.requests += 1;
        sent.lines += batch.lines;
        sent.bytes += batch.text.len() as u64;
    }
    Ok(Some(sent))
}
