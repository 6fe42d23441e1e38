//! Questions in SQL, as InfluxDB 3 speaks it, for a dashboard of one job. A measurement is a table; a column
//! that nobody has written does not exist there.

use serde_json::{Value as Json, json};
use tracer_ebpf::table::Unit;

use super::{
    Edition, conditions, name,
    names::{own_tags, unit},
    spec::{Ask, Facts, Look, Scope, Term, Value, Variable, What},
    times,
};

fn target(ask: &Ask, scope: &[Scope], look: Look) -> Json {
    let timed = matches!(ask.what, What::OverTime(..) | What::Hourly(..) | What::Buckets(_));
    let format = if timed && look != Look::Table { "time_series" } else { "table" };
    json!({ "rawQuery": true, "rawSql": query(ask, scope), "format": format })
}

fn variable(variable: &Variable) -> Json {
    let (of, _) = variable.of;
    let tag = variable.tag;
    let condition = condition(variable.within, &[]);
    json!(format!(r#"SELECT DISTINCT "{tag}" FROM "{of}" WHERE {condition} ORDER BY "{tag}""#))
}

/// The question's query.
pub fn query(ask: &Ask, scope: &[Scope]) -> String {
    let name = name(ask);
    match &ask.what {
        What::OverTime(term, by) => value(term, by, scope, name, Some("$__dateBin(time)")),
        What::Hourly(term, by) => value(term, by, scope, name, Some("date_trunc('hour', time)")),
        What::Whole(term, by) => value(term, by, scope, name, None),
        What::Buckets(metric) => format!(
            r#"SELECT $__dateBin(time) AS "time", "le", sum("n") AS "value" FROM "job_hist" WHERE {} GROUP BY 1, "le" ORDER BY 1"#,
            condition(scope, &[("metric", metric)])
        ),
        What::Facts(facts) => rows(facts, scope),
    }
}

fn value(term: &Term, by: &[&str], scope: &[Scope], name: &str, step: Option<&str>) -> String {
    let condition = condition(scope, term.only);
    let times = times(term);
    let time = step.map(|step| format!(r#"{step} AS "time""#));
    let tags: Vec<String> = by.iter().map(|tag| format!(r#""{tag}""#)).collect();
    let of = term.of;
    let series = |how: &str, field: &str| {
        // What else a series has is the same for all of one job.
        let mut all: Vec<String> = tags.clone();
        let own = ["host", "job"].into_iter().chain(own_tags(of)).map(|tag| format!(r#""{tag}""#));
        all.extend(own.filter(|tag| !tags.contains(tag)));
        let columns = joined(time.clone().into_iter().chain(all.clone()));
        let groups = joined(step.map(|_| "1".to_owned()).into_iter().chain(all));
        format!(
            r#"(SELECT {columns}, {how}("{field}") AS "v" FROM "{of}" WHERE {condition} GROUP BY {groups})"#
        )
    };
    let plain = || format!(r#""{of}" WHERE {condition}"#);
    let ms = if step.is_some() { "$__interval_ms" } else { "$__range_ms" };
    let (expression, from, time) = match term.value {
        Value::Level(field) => {
            ("sum(\"v\")".to_owned(), series("avg", field), step.map(|_| r#""time""#.to_owned()))
        }
        Value::Different(_, tag) => (format!(r#"count(DISTINCT "{tag}")"#), plain(), time),
        Value::Weighted(field) => {
            (format!(r#"sum("{field}" * "interval_ns") * 1.0 / {ms} / 1000000.0"#), plain(), time)
        }
        Value::Rate(field) => {
            let factor = match unit(of, field) {
                Ok(Unit::Nanoseconds) => "/ 1000000.0",
                _ => "* 1000.0",
            };
            (format!(r#"sum("{field}") * 1.0 / {ms} {factor}"#), plain(), time)
        }
        Value::Sum(field) => (format!(r#"sum("{field}")"#), plain(), time),
        Value::Largest(field) => (format!(r#"max("{field}")"#), plain(), time),
        // Of integers the quotient would be one too.
        Value::Ratio(a, b) => (format!(r#"sum("{a}") * 1.0 / sum("{b}")"#), plain(), time),
        Value::Product(a, b) => (format!(r#"sum("{a}" * "{b}")"#), plain(), time),
    };
    let columns = joined(time.into_iter().chain(tags.clone()));
    let columns = if columns.is_empty() { columns } else { columns + ", " };
    let groups = joined(step.map(|_| "1".to_owned()).into_iter().chain(tags));
    let groups = if groups.is_empty() { groups } else { format!(" GROUP BY {groups}") };
    let order = if step.is_some() { " ORDER BY 1" } else { "" };
    format!(r#"SELECT {columns}{expression}{times} AS "{name}" FROM {from}{groups}{order}"#)
}

/// All that is known: which of the facts exist as columns depends on the scheduler.
fn rows(facts: &Facts, scope: &[Scope]) -> String {
    let condition = condition(scope, &[]);
    let newest = facts.newest.map_or(String::new(), |n| format!(" ORDER BY time DESC LIMIT {n}"));
    format!(r#"SELECT * FROM "job_info" WHERE {condition}{newest}"#)
}

fn joined(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

fn condition(scope: &[Scope], only: &[(&str, &str)]) -> String {
    let of_scope = |scope: &Scope| match scope {
        Scope::One(tag) | Scope::AnyOf(tag) => format!(r#""{tag}" IN (${{{tag}:sqlstring}})"#),
        Scope::Not(tag, value) => format!(r#""{tag}" <> '{value}'"#),
    };
    let mut all = conditions(scope, only, of_scope, |tag, value| format!(r#""{tag}" = '{value}'"#));
    all.push("$__timeFilter(time)".into());
    all.join(" AND ")
}

/// This edition.
pub const EDITION: Edition = Edition {
    key: "sql",
    name: "SQL",
    source: "influxdb",
    target,
    variable,
    facts: true,
    legend_by_labels: true,
};
