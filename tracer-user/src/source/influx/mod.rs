//! The site's InfluxDB 1.x or 2.x: jobs as the agents' lines tell of them, by InfluxQL.
//!
//! A job that has ended has its totals in its last `job_info`: lists and sums read one row of it a job and node. Of what has
//! not, and for a report, the lines are added up by the server, in columns of time.

mod ask;
mod options;
mod query;
mod rows;
mod software;
mod told;

pub use options::Options;

use std::{
    cell::{OnceCell, RefCell},
    collections::BTreeMap,
    path::PathBuf,
    time::Instant,
};

use anyhow::{Result, anyhow, ensure};

use self::{
    ask::{PIECE_ROWS, Server},
    query::Span,
    software::Ran,
    told::{Info, NOT_IN_LINES},
};
use crate::{
    base::{clock::wall_ns, text::clean},
    lines::decode::Told,
    model::tables::{BLOCK, CPU, FAULT, GPU, MEMORY, NET, SCHED, WAIT, fact},
    record::{
        Record,
        days::Wanted,
        head::Head,
        name::day,
        select::{Run, is_named},
    },
    server::{
        INFLUX, http,
        secret::{self, Names},
        target::{self, query_url},
    },
};

const DAY_NS: u64 = 86_400_000_000_000;
/// Lines come this long after a job's end: its late write-back, then one interval.
const LATE_NS: u64 = 180_000_000_000;
/// Runs whose lines are asked for in one request.
const MOST_AT_ONCE: usize = 16;

/// A job's measurements.
static TABLES: [&tracer_ebpf::table::Measurement; 8] =
    [&SCHED, &FAULT, &BLOCK, &WAIT, &NET, &MEMORY, &CPU, &GPU];

/// Which job on which node: the tags of [`query::KEYS`].
type Key = [String; 5];

/// The database.
#[derive(Debug)]
pub struct Influx {
    server: Server,
    /// When the first job was told of; `None` inside: none was.
    first_ns: OnceCell<Option<u64>>,
    /// Of each job the start of the earliest run that was told of: days are told of from the newest on.
    told: RefCell<BTreeMap<Key, u64>>,
    /// Up to when the lines of a run are its own, by its begin, where another run follows.
    reach: RefCell<BTreeMap<(Key, u64), u64>>,
}

impl Influx {
    /// The database that `options` name, if they do; asks nothing yet.
    ///
    /// # Errors
    /// What is wrong or missing, and the cure.
    pub fn open(options: &Options) -> Result<Option<Self>> {
        let Some(url) = &options.influx else { return Ok(None) };
        let place = options.place();
        let url = query_url(url, &place, PIECE_ROWS).map_err(|why| anyhow!(why))?;
        let names = Names {
            user: options.influx_user.as_deref(),
            password_file: options.influx_password_file.as_deref(),
            token_file: options.influx_token_file.as_deref(),
        };
        let authorization = secret::read(names, target::guess(&place), &INFLUX)?;
        let timeout = options.influx_timeout.0;
        ensure!(!timeout.is_zero(), "--influx-timeout must be more than nothing");
        let ca = options.influx_ca.as_deref();
        let agent = http::agent(&url, ca, timeout, authorization.is_some(), &INFLUX)?;
        let until = Instant::now() + timeout;
        let server = Server { agent, url, authorization, until, timeout };
        let (told, reach) = (RefCell::default(), RefCell::default());
        Ok(Some(Self { server, first_ns: OnceCell::new(), told, reach }))
    }

    fn first_ns(&self) -> Result<Option<u64>> {
        if let Some(known) = self.first_ns.get() {
            return Ok(*known);
        }
        let mut first_ns = None;
        self.server.ask(&[query::first()], |_, rows| {
            first_ns = rows.values.first().and_then(|row| row.first()?.as_u64());
        })?;
        Ok(*self.first_ns.get_or_init(|| first_ns))
    }

    /// Lines of `job_info` that answer `statement`.
    fn infos(&self, statement: String) -> Result<Vec<Info>> {
        let mut infos = Vec::new();
        self.server
            .ask(&[statement], |_, rows| infos.extend(rows::told(&rows).filter_map(Info::of)))?;
        Ok(infos)
    }

    /// What jobs ran, as lines in `span` tell.
    fn software(&self, span: Span) -> Result<Ran> {
        let mut ran = Ran::default();
        self.server.ask(&[query::software(span)], |_, rows| ran.add(&rows))?;
        Ok(ran)
    }

    /// Gives the heads of the runs in `span` that `filter` wants and that were not given before.
    fn heads(&self, span: Span, filter: &str, visit: &mut dyn FnMut(Head)) -> Result<()> {
        let mut infos = self.infos(query::told_last(span, filter))?;
        infos.retain(|info| info.end_ns().is_none());
        infos.extend(self.infos(query::ended(span, filter))?);
        infos.sort_by_key(|info| std::cmp::Reverse(info.time_ns));
        let mut open = Vec::new();
        for info in infos {
            let Some(until_ns) = self.is_news(&info) else { continue };
            // An agent that was started anew began its totals anew: before, there are lines.
            let from_ns = info.begin_ns();
            let is_later = info.facts.has(const { fact("counted_from") });
            let first_ns =
                info.start_ns().filter(|_| is_later).map_or(from_ns, |at| at.min(from_ns));
            match info.end_ns().filter(|_| !info.totals.is_empty()) {
                Some(end_ns) => {
                    visit(head(&info.whole(end_ns)));
                    if first_ns < from_ns {
                        let mut before = info;
                        before.facts.remove(const { fact("end") });
                        open.push((before, (first_ns, from_ns)));
                    }
                }
                None => open.push((info, (first_ns, until_ns))),
            }
        }
        for some in open.chunks(MOST_AT_ONCE) {
            for record in self.columns(some)? {
                // Before an agent came there are none; of a job that ended and that nobody counted, neither.
                let has_ended = record.facts.has(const { fact("end") });
                if has_ended || record.totals.stats.groups.iter().any(|group| !group.is_idle()) {
                    visit(head(&record));
                }
            }
        }
        Ok(())
    }

    /// Up to when the lines of the run that `info` is of are its own; `None` where it was told of already.
    fn is_news(&self, info: &Info) -> Option<u64> {
        let key = key(&info.origin.cluster, &info.origin.host, &info.job);
        let start_ns = info.start_ns().unwrap_or(info.begin_ns());
        let mut told = self.told.borrow_mut();
        let next_ns = told.get(&key).copied();
        if next_ns.is_some_and(|next_ns| start_ns >= next_ns) {
            return None;
        }
        told.insert(key.clone(), start_ns);
        // The node's clock may be ahead of ours.
        let until_ns = info.end_ns().unwrap_or_else(wall_ns).saturating_add(LATE_NS);
        let until_ns = next_ns.map_or(until_ns, |next_ns| until_ns.min(next_ns));
        self.reach.borrow_mut().insert((key, info.begin_ns()), until_ns);
        Some(until_ns)
    }

    /// The records of runs, each with the span of its lines, added up by the server.
    fn columns(&self, runs: &[(Info, Span)]) -> Result<Vec<Record>> {
        let width = |(_, (from, to)): &(Info, Span)| told::width_ns(to.saturating_sub(*from));
        let widths: Vec<_> = runs.iter().map(width).collect();
        let mut statements = Vec::new();
        for ((info, span), width_ns) in runs.iter().zip(&widths) {
            let head = head(&info.record(span.0));
            statements.extend(TABLES.map(|table| query::columns(table, &head, *span, *width_ns)));
        }
        let mut found: Vec<Vec<Told>> = runs.iter().map(|_| Vec::new()).collect();
        self.server.ask(&statements, |at, rows| {
            found
                .get_mut(at / TABLES.len())
                .into_iter()
                .for_each(|of| of.extend(rows::told(&rows)));
        })?;
        let records =
            runs.iter().zip(found).zip(widths).map(|(((info, span), columns), width_ns)| {
                let mut record = info.record(span.0);
                let last_ns =
                    columns.iter().map(|told| told.time_ns.saturating_add(width_ns - 1)).max();
                let seen_ns = last_ns.unwrap_or(span.0).min(span.1);
                told::add(&mut record, columns, width_ns, info.end_ns().unwrap_or(seen_ns));
                record
            });
        Ok(records.collect())
    }

    /// The record of the run of which `known` is the head.
    fn record(&self, known: &Head) -> Result<Option<Record>> {
        let infos = self.infos(query::facts_of(known))?;
        let Some(mut info) = infos.into_iter().next() else { return Ok(None) };
        let begin_ns = known.begin.unwrap_or(info.begin_ns());
        let key = key(known.cluster.as_deref().unwrap_or_default(), &info.origin.host, &info.job);
        let mut until_ns = self.reach.borrow().get(&(key, begin_ns)).copied();
        if known.end.is_none() {
            // A part that another follows, or one that runs.
            info.facts.remove(const { fact("end") });
            until_ns = known.seen;
        }
        let until_ns = until_ns.unwrap_or(wall_ns());
        let mut records = self.columns(&[(info, (begin_ns, until_ns))])?;
        Ok(records.pop().map(|mut record| {
            record.totals.notes.push(NOT_IN_LINES.to_owned());
            record
        }))
    }
}

fn key(cluster: &str, host: &str, job: &crate::model::job::Job) -> Key {
    [cluster, host, &job.job, &job.manager, &job.step].map(str::to_owned)
}

/// The head of what lines tell: there is no file.
fn head(record: &Record) -> Head {
    Head { file: None, ..Head::from(record) }
}

/// The days from `first` to `last`, each a span of time, the newest first.
fn days(first_ns: u64, last_ns: u64) -> impl Iterator<Item = (String, Span)> {
    let days = first_ns / DAY_NS..=last_ns / DAY_NS;
    days.rev().map(|number| (day(number * DAY_NS), (number * DAY_NS, (number + 1) * DAY_NS)))
}

impl Influx {
    /// The days with jobs that were seen since `since_ns`, the newest first.
    ///
    /// # Errors
    /// As all here: when the server does not answer in time, or refuses.
    pub fn days(&self, since_ns: u64) -> Result<Vec<String>> {
        Ok(self.spans(since_ns)?.into_iter().map(|(day, _)| day).collect())
    }

    fn spans(&self, since_ns: u64) -> Result<Vec<(String, Span)>> {
        let Some(first_ns) = self.first_ns()? else { return Ok(Vec::new()) };
        Ok(days(first_ns.max(since_ns), wall_ns()).collect())
    }

    /// Gives `visit` the heads that are wanted, by day, the newest first.
    ///
    /// # Errors
    /// As [`Self::days`].
    pub fn visit(&self, wanted: &Wanted, visit: &mut dyn FnMut(Head)) -> Result<()> {
        let mut spans = self.spans(wanted.since_ns)?;
        spans.retain(|(day, _)| {
            wanted.first.is_none_or(|first| &**day >= first)
                && wanted.last.is_none_or(|last| &**day <= last)
        });
        spans.into_iter().try_for_each(|(_, span)| {
            let ran = if wanted.with_software { self.software(span)? } else { Ran::default() };
            self.heads(span, "", &mut |mut head| {
                ran.tell(&mut head);
                visit(head);
            })
        })
    }

    /// The heads of the jobs that are called one of `jobs`: by id, id and step, or name.
    ///
    /// # Errors
    /// As [`Self::days`].
    pub fn named(&self, jobs: &[&String]) -> Result<Vec<(PathBuf, Head)>> {
        // A step's id follows a point.
        let ids = jobs.iter().flat_map(|job| job.rsplit_once('.').map(|(job, _)| job.to_owned()));
        let ids: Vec<_> = jobs.iter().map(|job| (*job).clone()).chain(ids).collect();
        let all = (0, wall_ns());
        let mut heads = Vec::new();
        for key in ["job", "name"] {
            let missing: Vec<_> = ids
                .iter()
                .filter(|id| !heads.iter().any(|(_, head)| is_named(head, id)))
                .cloned()
                .collect();
            if !missing.is_empty() {
                let filter = query::is_one_of(key, &missing);
                self.heads(all, &filter, &mut |head| heads.push((PathBuf::new(), head)))?;
            }
        }
        heads.retain(|(_, head)| jobs.iter().any(|job| is_named(head, job)));
        Ok(heads)
    }

    /// The records of a run.
    ///
    /// # Errors
    /// As [`Self::days`], and when none are left.
    pub fn read(&self, run: &Run) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        for (_, head) in &run.parts {
            records.extend(self.record(head)?);
        }
        ensure!(!records.is_empty(), "the lines of this job are gone from {}", self.server.shown());
        Ok(records)
    }

    /// What to say where nothing is known of `job`.
    pub fn unknown(&self, job: &str) -> String {
        format!(
            "no line of job {} in the database at {}: `jobtrace jobs --influx URL` lists those that there are",
            clean(job, true),
            self.server.shown()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_go_back_from_the_newest() {
        let days: Vec<_> = days(DAY_NS - 1, 2 * DAY_NS).collect();
        let names: Vec<_> = days.iter().map(|(day, _)| day.as_str()).collect();
        assert_eq!(names, ["1970-01-03", "1970-01-02", "1970-01-01"]);
        assert_eq!(days[1].1, (DAY_NS, 2 * DAY_NS));
    }
}
