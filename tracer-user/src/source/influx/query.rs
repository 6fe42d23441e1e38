//! The questions, in InfluxQL.
//!
//! Pure. Texts from outside are quoted: none of them becomes a part of the question.

use tracer_ebpf::table::{Kind, Measurement};

use crate::{
    model::{
        hist::QUANTILES,
        tables::{
            Block, Cpu, FACTS, Fault, Gpu, INTERVAL, JOB_INFO, JOB_SOFTWARE, Memory, Net,
            SOFTWARE_FIELDS, Sched, total_name, total_parts,
        },
    },
    record::head::Head,
};

/// What tells jobs on nodes apart. Not the owner, who may come to light while the job runs.
pub const KEYS: [&str; 5] = ["cluster", "host", "job", "manager", "step"];

/// A time, later than the first and up to the second, Unix ns.
pub type Span = (u64, u64);

/// A text in single quotes.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            c => quoted.push(c),
        }
    }
    quoted + "'"
}

/// The condition that lines are of the job that `head` is of, on its node.
fn of(head: &Head) -> String {
    let values = [&head.cluster, &head.host, &head.job, &head.manager, &head.step];
    let is = |(key, value): (&str, &Option<String>)| {
        format!("\"{key}\" = {}", quoted(value.as_deref().unwrap_or_default()))
    };
    KEYS.into_iter().zip(values).map(is).collect::<Vec<_>>().join(" AND ")
}

fn within((after_ns, up_to_ns): Span) -> String {
    format!("time > {after_ns} AND time <= {up_to_ns}")
}

fn keys() -> String {
    KEYS.map(|key| format!("\"{key}\"")).join(", ")
}

fn facts() -> String {
    let names = FACTS.iter().map(|fact| fact.name).chain(["user"]);
    names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// The totals that heads are made of, by their names in `job_info`.
pub fn totals() -> Vec<String> {
    let fields = [
        Sched::on_cpu_ns,
        Sched::exits_failed,
        Sched::exits_killed,
        Cpu::cores_held,
        Cpu::held_ns,
        Memory::used_peak_bytes,
        Memory::cache_peak_bytes,
        Memory::peak_bytes,
        Memory::limit_bytes,
        Memory::held_byte_s,
        Memory::used_byte_s,
        Fault::oom_kills,
        Block::bytes,
        Net::sent_bytes,
        Net::received_bytes,
        Gpu::held_ns,
        Gpu::busy_ns,
    ];
    let names = fields.iter().flat_map(|field| {
        let (table, parts) = (field.measurement(), total_parts(field.measurement()));
        let whole = parts.is_empty().then_some(None);
        let parts = parts.iter().map(|part| Some(*part)).chain(whole);
        parts.map(move |part| total_name(table, part, field.field()))
    });
    let times = [Sched::run_queue_wait_ns, Sched::blocked_ns];
    names.chain(times.map(|time| total_name(time.measurement(), None, time.field()))).collect()
}

/// How the jobs ended that ended in `span` and that `filter` (a condition, or nothing) wants, the last first.
pub fn ended(span: Span, filter: &str) -> String {
    let totals: String = totals().iter().map(|name| format!(", \"{name}\"")).collect();
    format!(
        "SELECT {}{totals} FROM \"{JOB_INFO}\" WHERE \"end\" > 0 AND {}{filter} GROUP BY {} ORDER BY time DESC",
        facts(),
        within(span),
        keys()
    )
}

/// What each job in `span` ran, as told last.
pub fn software(span: Span) -> String {
    let fields: Vec<_> = SOFTWARE_FIELDS.iter().map(|(name, ..)| format!("\"{name}\"")).collect();
    format!(
        "SELECT {} FROM \"{JOB_SOFTWARE}\" WHERE {} GROUP BY {} ORDER BY time DESC LIMIT 1",
        fields.join(", "),
        within(span),
        keys()
    )
}

/// What was told last of each job in `span`.
pub fn told_last(span: Span, filter: &str) -> String {
    let others = facts().replace("\"start\", ", "");
    format!(
        "SELECT last(\"start\") AS \"start\", {others} FROM \"{JOB_INFO}\" WHERE {}{filter} GROUP BY {}",
        within(span),
        keys()
    )
}

/// What was told last of the run that `head` is of.
pub fn facts_of(head: &Head) -> String {
    let run = head.start.map_or(String::new(), |start| format!(" AND \"start\" = {start}"));
    format!(
        "SELECT {} FROM \"{JOB_INFO}\" WHERE {}{run} GROUP BY {} ORDER BY time DESC LIMIT 1",
        facts(),
        of(head),
        keys()
    )
}

/// When the first job was told of.
pub fn first() -> String {
    format!("SELECT first(\"start\") FROM \"{JOB_INFO}\"")
}

/// The values of `table` of the job that `head` is of in `span`, added up in columns of `width_ns`, each of which has
/// the lines stamped later than its begin and up to its end.
pub fn columns(table: &Measurement, head: &Head, span: Span, width_ns: u64) -> String {
    let interval = format!("max(\"{0}\") AS \"{0}\"", INTERVAL.name);
    let select: Vec<_> = table.fields.iter().flat_map(selectors).chain([interval]).collect();
    format!(
        "SELECT {} FROM \"{}\" WHERE {} AND {} GROUP BY time({width_ns}ns, 1ns), * fill(none)",
        select.join(", "),
        table.name,
        of(head),
        within(span)
    )
}

/// What several lines have of a field together. Of percentiles it is the highest, which that of all of them is not above.
fn selectors(field: &tracer_ebpf::table::Field) -> Vec<String> {
    let one = |how: &str, part: &str| {
        let name = format!("{}{part}", field.name);
        format!("{how}(\"{name}\") AS \"{name}\"")
    };
    match field.kind {
        Kind::Counter => vec![one("sum", "")],
        Kind::Gauge | Kind::Constant => vec![one("last", "")],
        Kind::Peak => vec![one("max", "")],
        Kind::Histogram => {
            let parts = [("sum", "_count"), ("sum", "_sum"), ("min", "_min"), ("max", "_max")];
            let parts = parts.into_iter().map(|(how, part)| one(how, part));
            parts.chain(QUANTILES.iter().map(|(name, _)| one("max", &format!("_{name}")))).collect()
        }
    }
}

/// A condition that the job is called one of `names`, by `key`.
pub fn is_one_of(key: &str, names: &[String]) -> String {
    let any: Vec<_> = names.iter().map(|name| format!("\"{key}\" = {}", quoted(name))).collect();
    format!(" AND ({})", any.join(" OR "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_texts() {
        for (text, expected) in [
            ("4711", "'4711'"),
            ("x' OR time > 0 --", r"'x\' OR time > 0 --'"),
            ("a\\", r"'a\\'"),
            ("a\nb", r"'a\nb'"),
            ("\u{e9}", "'\u{e9}'"),
        ] {
            assert_eq!(quoted(text), expected);
        }
        let head = Head { job: Some("a' OR ''='".into()), ..Head::default() };
        assert!(facts_of(&head).contains(r#""job" = 'a\' OR \'\'=\'' AND "manager" = ''"#));
        assert_eq!(
            is_one_of("name", &["a'".into(), "b".into()]),
            r#" AND ("name" = 'a\'' OR "name" = 'b')"#
        );
    }

    #[test]
    fn each_kind_of_field_is_added_up_in_its_own_way() {
        let text = columns(Memory::peak_bytes.measurement(), &Head::default(), (5, 9), 8);
        for part in [
            r#"sum("held_byte_s") AS "held_byte_s""#,
            r#"last("anon_bytes")"#,
            r#"max("peak_bytes")"#,
            r#"FROM "job_memory" WHERE "cluster" = '' AND"#,
            "time > 5 AND time <= 9 GROUP BY time(8ns, 1ns), * fill(none)",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = columns(Sched::on_cpu_ns.measurement(), &Head::default(), (5, 9), 8);
        for part in
            ["sum(\"blocked_ns_count\")", "min(\"blocked_ns_min\")", "max(\"blocked_ns_p99\")"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(totals().contains(&"block_write_bytes".to_owned()));
        assert!(totals().contains(&"sched_on_cpu_ns".to_owned()));
    }
}
