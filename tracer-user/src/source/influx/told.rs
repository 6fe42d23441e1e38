//! Records made of what lines tell: of a job's totals at its end, or of its intervals.
//!
//! Pure. What lines do not hold is unknown in them, and said.

use std::collections::BTreeMap;

use tracer_ebpf::table::Kind;

use crate::{
    lines::decode::{Told, What, total_groups},
    model::{
        group::{Group, Value, follow_all},
        hist::Hist,
        info::{Exit, Facts, JobInfo},
        job::Job,
        point::{FieldValue, Origin},
        tables::fact,
    },
    record::{Record, timeline::FIRST_WIDTH_NS},
};

/// Width of the columns of a job of `span_ns`, as its timeline has them.
pub fn width_ns(span_ns: u64) -> u64 {
    let mut width_ns = FIRST_WIDTH_NS;
    while width_ns * (crate::record::timeline::MOST_COLUMNS - 1) < span_ns {
        width_ns *= 2;
    }
    width_ns
}

/// A run of a job on one node, as `job_info` tells of it.
#[derive(Clone, Debug)]
pub struct Info {
    /// The node.
    pub origin: Origin,
    /// The job.
    pub job: Job,
    /// What is known of it.
    pub facts: Facts,
    /// Its totals, told at its end.
    pub totals: BTreeMap<String, FieldValue>,
    /// When this was told.
    pub time_ns: u64,
}

impl Info {
    /// What a line tells, where it is one of `job_info`.
    pub fn of(told: Told) -> Option<Self> {
        let What::Facts(facts, totals) = told.what else { return None };
        Some(Self { origin: told.origin, job: told.job, facts, totals, time_ns: told.time_ns })
    }

    /// When it began.
    pub fn start_ns(&self) -> Option<u64> {
        self.facts.number(const { fact("start") })
    }

    /// When it ended, if it has.
    pub fn end_ns(&self) -> Option<u64> {
        self.facts.number(const { fact("end") })
    }

    /// From when on it was counted.
    pub fn begin_ns(&self) -> u64 {
        let number = |row| self.facts.number(row);
        let counted_ns = number(const { fact("elapsed_ns") });
        let begin = self.end_ns().zip(counted_ns).map(|(end, counted)| end.saturating_sub(counted));
        let from = number(const { fact("counted_from") });
        begin.or(from).or(self.start_ns()).unwrap_or(self.time_ns)
    }

    /// A record that begins at `begin_ns` and has no values so far.
    pub fn record(&self, begin_ns: u64) -> Record {
        let mut facts = self.facts.clone();
        facts.remove(const { fact("elapsed_ns") });
        let info = JobInfo { user: self.job.user.clone(), ..JobInfo::from(&facts) };
        let mut record = Record::new(&self.origin, self.job.clone(), info, begin_ns);
        let exit = facts.number(const { fact("exit") }).and_then(|exit| i32::try_from(exit).ok());
        record.totals.exit = exit.map(|code| Exit { code: Some(code), signal: None });
        record.facts = facts;
        record
    }

    /// The record of its totals, without a course.
    pub fn whole(&self, until_ns: u64) -> Record {
        let begin_ns = self.begin_ns();
        let mut record = self.record(begin_ns);
        record.add(until_ns.saturating_sub(begin_ns), &total_groups(&self.totals), &[]);
        record
    }
}

/// A column of time that lines tell of.
#[derive(Default)]
struct Column {
    groups: Vec<Group>,
    /// How far before its end the first of its lines may begin.
    covers_ns: u64,
}

/// Adds to `record` what was told of its columns of `width_ns`, up to `until_ns`, in any order.
pub fn add(record: &mut Record, columns: Vec<Told>, width_ns: u64, until_ns: u64) {
    let mut by_time = BTreeMap::<u64, Column>::new();
    let mut nothing: Vec<Group> = Vec::new();
    for told in columns {
        let What::Values(mut group, hists) = told.what else { continue };
        for (at, figures) in hists {
            group.values[at] = Some(Value::Histogram(figures.sketch()));
        }
        follow_all(&mut nothing, &[idle(&group)]);
        let column = by_time.entry(told.time_ns).or_default();
        column.covers_ns = column.covers_ns.max(told.span_ns.unwrap_or(0)).max(width_ns);
        follow_all(&mut column.groups, &[group]);
    }
    for (begin_ns, mut column) in by_time {
        // A column begins a nanosecond later than the one before it ends.
        let end_ns = begin_ns.saturating_add(width_ns - 1).min(until_ns);
        add_up_to(record, end_ns.saturating_sub(column.covers_ns), &nothing);
        follow_all(&mut column.groups, &nothing);
        record.add(end_ns.saturating_sub(record.timeline.end_ns()), &column.groups, &[]);
    }
    add_up_to(record, until_ns, &nothing);
}

/// Adds a time in which the job did `nothing`, if there is any.
fn add_up_to(record: &mut Record, until_ns: u64, nothing: &[Group]) {
    if let span_ns @ 1.. = until_ns.saturating_sub(record.timeline.end_ns()) {
        record.add(span_ns, nothing, &[]);
    }
}

/// The same series while nothing happens, of which no line is written: what is counted there is nothing, not unknown.
fn idle(group: &Group) -> Group {
    let mut idle = Group::unknown(group.measurement, group.tags.clone());
    for ((field, value), own) in group.fields().zip(&mut idle.values) {
        *own = match (field.kind, value) {
            (Kind::Counter, Some(_)) => Some(Value::Number(0)),
            (Kind::Histogram, Some(_)) => Some(Value::Histogram(Hist::default())),
            _ => None,
        };
    }
    idle
}

/// What the lines of a job do not hold, for who reads its report.
pub const NOT_IN_LINES: &str = "from the database's lines: percentiles are upper bounds, the busiest moment is a mean over \
    a column of the course, steps, tasks and software (`jobtrace software` tells it) are left out, and what the node could not count looks as if it were not there";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tables::{SCHED, Sched};

    const S: u64 = 1_000_000_000;

    /// A line of an interval of 4 s.
    fn told(time_ns: u64, on_cpu_ns: u64) -> Told {
        let mut group = Group::unknown(&SCHED, vec![]);
        group.set(Sched::on_cpu_ns, on_cpu_ns);
        let what = What::Values(group, Vec::new());
        let (origin, job) = (Origin::default(), Job::default());
        Told { origin, job, time_ns, span_ns: Some(4 * S), what }
    }

    #[test]
    fn columns_become_a_course_whose_sum_is_the_total() {
        let facts = Facts::default();
        let (origin, job) = (Origin::default(), Job::default());
        let info = Info { origin, job, facts, totals: BTreeMap::new(), time_ns: 0 };
        let mut record = info.record(100 * S + 5);
        // Stamped at 104 s, 108 s, and late, after the end.
        let columns = vec![told(104 * S + 1, 30), told(100 * S + 1, 10), told(112 * S + 1, 2)];
        add(&mut record, columns, 4 * S, 110 * S);
        assert_eq!((record.totals.elapsed_ns, record.timeline.end_ns()), (10 * S - 5, 110 * S));
        let sched = record.totals.stats.group(&SCHED).unwrap();
        assert_eq!(sched.number(Sched::on_cpu_ns), Some(42));
        let course: Vec<_> =
            record.timeline.columns().map(|column| column[0].unwrap_or(0)).collect();
        assert_eq!((course.iter().sum::<u64>(), course.len()), (42, 10));
        assert!(course[..4].iter().sum::<u64>() == 10 && course[8..].iter().sum::<u64>() == 2);
    }

    #[test]
    fn a_time_without_lines_is_one_in_which_nothing_happened() {
        let (origin, job) = (Origin::default(), Job::default());
        let info =
            Info { origin, job, facts: Facts::default(), totals: BTreeMap::new(), time_ns: 0 };
        let mut record = info.record(100 * S);
        // The interval of 4 s up to 120 s, in columns of a second.
        add(&mut record, vec![told(119 * S + 1, 40)], S, 124 * S);
        let course: Vec<_> = record.timeline.columns().map(|column| column[0]).collect();
        let expected: Vec<_> = [(16, 0), (4, 10), (4, 0)]
            .into_iter()
            .flat_map(|(times, ns)| std::iter::repeat_n(Some(ns), times))
            .collect();
        assert_eq!(course, expected);
    }

    #[test]
    fn columns_are_as_many_as_fit() {
        assert_eq!(width_ns(0), S);
        assert_eq!(width_ns(239 * S), S);
        assert_eq!(width_ns(240 * S), 2 * S);
        assert_eq!(width_ns(86_400 * S), 512 * S);
    }

    #[test]
    fn a_run_begins_where_its_counting_did() {
        let info = |facts: &[(&'static crate::model::tables::Fact, u64)]| {
            let mut known = Facts::default();
            facts.iter().for_each(|(fact, number)| known.set(fact, *number));
            let (origin, job, totals) = (Origin::default(), Job::default(), BTreeMap::new());
            Info { origin, job, facts: known, totals, time_ns: 99 }
        };
        let [start, from, end, counted] =
            const { [fact("start"), fact("counted_from"), fact("end"), fact("elapsed_ns")] };
        assert_eq!(info(&[]).begin_ns(), 99);
        assert_eq!(info(&[(start, 5)]).begin_ns(), 5);
        assert_eq!(info(&[(start, 5), (from, 7)]).begin_ns(), 7);
        assert_eq!(info(&[(start, 5), (end, 20), (counted, 12)]).begin_ns(), 8);
        let whole = info(&[(start, 5), (end, 20), (counted, 12)]).whole(20);
        assert_eq!((whole.totals.elapsed_ns, whole.timeline.begin_ns()), (12, 8));
        assert!(!whole.facts.has(counted) && whole.facts.has(end));
    }
}
