//! The head of what is said of a running job whose file operations were counted for a while: for how long, and of
//! what time.

use super::{
    Style,
    facts::Facts,
    file_ops::AllFileOps,
    line::{Line, Tone},
};
use crate::{
    base::{text, units::long_duration},
    model::tables::fact,
    record::Record,
};

/// Whose they are, and what part of its time they are of; that there were none.
pub fn lines(record: &Record, facts: &Facts, style: &Style) -> Vec<Line> {
    let clean = |text: &str| text::clean(text, facts.unicode);
    let job = record.job();
    let user =
        if job.user.is_empty() { String::new() } else { format!(" of {}", clean(&job.user)) };
    let name = text::truncate(&format!("{}{user}", clean(&job.job)), style.width);
    let told = |line: &String| Line::new().plain("  ").plain(line);
    let mut lines = vec![Line::new().strong(name)];
    lines.extend(text::wrap(&span(record), style.width - 2).iter().map(told));
    let all = AllFileOps::of(facts);
    if all.rows.is_empty() {
        let elsewhere = if all.elsewhere.is_empty() { "" } else { "; " };
        let none = format!("it did no operation on files meanwhile{elsewhere}{}", all.elsewhere);
        let wrapped = text::wrap(&none, style.width - 2);
        lines.extend(wrapped.iter().map(|line| Line::new().plain("  ").with(Tone::Warn, line)));
    }
    lines
}

/// `counted for 1 min of a job that has run for 2 h: what it did before is not in these numbers`.
fn span(record: &Record) -> String {
    let facts = &record.facts;
    let end = facts.number(const { fact("end") });
    let counted = long_duration(record.totals.elapsed_ns);
    let start = facts.number(const { fact("start") });
    let until = end.unwrap_or_else(|| record.timeline.end_ns());
    let ran = start.map(|start| long_duration(until.saturating_sub(start)));
    let of = match (ran, end) {
        (Some(ran), Some(_)) => format!(" of a job that ran for {ran} and has ended"),
        (Some(ran), None) => format!(" of a job that has run for {ran}"),
        (None, _) => String::new(),
    };
    format!("file operations counted for {counted}{of}: what it did before is not in these numbers")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{
            group::Group,
            hist::Hist,
            info::JobInfo,
            job::Job,
            point::Origin,
            tables::{IO, IO_ERROR, Io, IoError, SCHED, Sched},
        },
        view::of_dive,
    };

    const SECOND: u64 = 1_000_000_000;

    /// A job of Ada's that began two hours before it was counted for a minute.
    fn record(groups: &[Group]) -> Record {
        let job = Job { job: "4711".into(), user: "ada".into(), ..Job::default() };
        let info = JobInfo { start_wall_ns: 1_795_305_600 * SECOND, ..JobInfo::default() };
        let mut record =
            Record::new(&Origin::default(), job, info, (1_795_305_600 + 7_140) * SECOND);
        record.add(60 * SECOND, groups, &[]);
        record
    }

    const PLAIN: Style = Style { width: 100, color: false, unicode: false };

    #[test]
    fn what_was_not_counted_is_said_first() {
        let mut record = record(&[]);
        let text = of_dive(&record, &PLAIN);
        assert!(
            text.starts_with(
                "4711 of ada\n  file operations counted for 1 min 0 s of a job that has run for 2 h 0 min: what it did before is\n  \
                 not in these numbers\n  it did no operation on files meanwhile\n"
            ),
            "{text}"
        );
        record.facts.set(const { fact("end") }, (1_795_305_600 + 7_200) * SECOND);
        assert!(
            of_dive(&record, &PLAIN).contains("of a job that ran for 2 h 0 min and has ended:")
        );
        record.facts.remove(const { fact("start") });
        assert!(of_dive(&record, &PLAIN).contains("counted for 1 min 0 s: what it did before"));
    }

    #[test]
    fn operations_are_told_in_the_tables_of_a_run() {
        let group = |fs: &str, mount: &str, ops: u64| {
            let tags = [fs, mount, "open"].map(str::to_owned);
            let mut group = Group::unknown(&IO, tags.into());
            group.set(Io::ops, ops);
            group
        };
        let text = of_dive(&record(&[group("ext4", "/data", 12)]), &PLAIN);
        assert!(text.contains("I/O by mount and operation") && text.contains("open /data (ext4)"));
        assert!(!text.contains("no operation on files"), "{text}");
        let text = of_dive(&record(&[group("pipefs", "", 7)]), &PLAIN);
        assert!(text.contains("no operation on files meanwhile; not in the table: 7 operations"));
        assert!(text.contains("In short"), "{text}");
    }

    /// A job that waits for a CPU all the time, and whose disk was full once: that is what files have to do with.
    #[test]
    fn findings_are_those_of_file_operations() {
        let mut sched = Group::unknown(&SCHED, Vec::new());
        sched.set(Sched::on_cpu_ns, SECOND);
        let mut waited = Hist::default();
        waited.record(59 * SECOND);
        sched.set_hist(Sched::run_queue_wait_ns, waited);
        let mut full = Group::unknown(
            &IO_ERROR,
            ["ENOSPC", "ext4", "/data", "write"].map(str::to_owned).into(),
        );
        full.set(IoError::ops, 1);
        let of_job = [sched.clone(), full];
        let whole = crate::view::summary(&record(&of_job), &PLAIN);
        assert!(whole.contains("waited for a CPU"), "{whole}");
        let text = of_dive(&record(&of_job), &PLAIN);
        assert!(text.contains("write /data (ext4) failed once with ENOSPC"), "{text}");
        assert!(!text.contains("waited for a CPU"), "{text}");
        let text = of_dive(&record(&[sched]), &PLAIN);
        assert!(text.contains("nothing stands out"), "{text}");
    }
}
