//! Questions in InfluxQL, for InfluxDB 1.x and what speaks its language.

use serde_json::{Value as Json, json};
use tracer_ebpf::table::Unit;

use super::{
    Edition, conditions, name,
    names::unit,
    spec::{Ask, Facts, Look, Scope, Term, Value, Variable, What},
    times,
};

const HOUR: &str = "1h";

/// A query as Grafana's data source for InfluxDB takes it.
pub fn target(ask: &Ask, scope: &[Scope], look: Look) -> Json {
    let table = matches!(look, Look::Table | Look::Columns);
    json!({
        "rawQuery": true,
        "query": query(ask, scope),
        "resultFormat": if table { "table" } else { "time_series" },
        "alias": alias(ask),
    })
}

/// `{tag}` in Grafana's way.
fn alias(ask: &Ask) -> String {
    match ask.what {
        What::Buckets(_) => "$tag_le".into(),
        _ => ask.legend.replace('{', "[[tag_").replace('}', "]]"),
    }
}

/// The values that a variable offers: of the time range only, which SHOW TAG VALUES ignores.
pub fn variable(variable: &Variable) -> Json {
    let (of, field) = variable.of;
    let condition = condition(variable.within, &[]);
    let tag = variable.tag;
    json!(format!(
        r#"SELECT "{tag}" FROM (SELECT last("{field}") FROM "{of}" WHERE {condition} GROUP BY "{tag}")"#
    ))
}

/// The question's query.
pub fn query(ask: &Ask, scope: &[Scope]) -> String {
    let name = name(ask);
    match &ask.what {
        What::OverTime(term, by) => value(term, by, scope, name, Some("$__interval")),
        What::Hourly(term, by) => value(term, by, scope, name, Some(HOUR)),
        What::Whole(term, by) => value(term, by, scope, name, None),
        What::Buckets(metric) => format!(
            r#"SELECT sum("n") FROM "job_hist" WHERE {} GROUP BY time($__interval), "le" fill(0)"#,
            condition(scope, &[("metric", metric)])
        ),
        What::Facts(facts) => rows(facts, scope),
    }
}

/// A value for each step, or one for the whole range.
fn value(term: &Term, by: &[&str], scope: &[Scope], name: &str, step: Option<&str>) -> String {
    let condition = condition(scope, term.only);
    let groups = groups(step, by);
    // Nothing happened, nothing was written: a disk that rests is at zero, a job that is gone is not.
    let fill = match step {
        Some(_) if is_rest_zero(term) => " fill(0)",
        Some(_) => " fill(null)",
        None => "",
    };
    let (of, times) = (term.of, times(term));
    // The steps of a query are counted within the time it is told itself.
    let within = step.map_or("", |_| " WHERE $timeFilter");
    let product =
        |a: &str, b: &str| format!(r#"SELECT "{a}" * "{b}" AS "v" FROM "{of}" WHERE {condition}"#);
    let (all, inner) = match term.value {
        Value::Level(field) => {
            (r#"sum("v")"#.into(), each("mean", field, of, &condition, step, "*"))
        }
        Value::Different(field, tag) => {
            let tag = format!(r#""{tag}""#);
            (r#"count("v")"#.into(), each("last", field, of, &condition, step, &tag))
        }
        Value::Product(a, b) => (r#"sum("v")"#.into(), product(a, b)),
        Value::Weighted(field) => {
            let share = format!(r#"sum("v") / {} / 1000000"#, milliseconds(step));
            (share, product(field, "interval_ns"))
        }
        _ => {
            let expression = expression(term, step);
            return format!(
                r#"SELECT {expression}{times} AS "{name}" FROM "{of}" WHERE {condition}{groups}{fill}"#
            );
        }
    };
    format!(r#"SELECT {all}{times} AS "{name}" FROM ({inner}){within}{groups}{fill}"#)
}

/// One value for each step and group.
fn each(
    how: &str,
    field: &str,
    of: &str,
    condition: &str,
    step: Option<&str>,
    group: &str,
) -> String {
    let (time, fill) = match step {
        Some(step) => (format!("time({step}), "), " fill(none)"),
        None => (String::new(), ""),
    };
    format!(
        r#"SELECT {how}("{field}") AS "v" FROM "{of}" WHERE {condition} GROUP BY {time}{group}{fill}"#
    )
}

/// The step's length.
fn milliseconds(step: Option<&str>) -> &'static str {
    match step {
        None => "$__range_ms",
        Some(HOUR) => "3600000",
        Some(_) => "$__interval_ms",
    }
}

fn expression(term: &Term, step: Option<&str>) -> String {
    let ms = milliseconds(step);
    match term.value {
        Value::Rate(field) => match unit(term.of, field) {
            Ok(Unit::Nanoseconds) => format!(r#"sum("{field}") / {ms} / 1000000"#),
            _ => format!(r#"sum("{field}") / {ms} * 1000"#),
        },
        Value::Sum(field) => format!(r#"sum("{field}")"#),
        Value::Largest(field) => format!(r#"max("{field}")"#),
        Value::Ratio(a, b) => format!(r#"sum("{a}") / sum("{b}")"#),
        Value::Product(..) | Value::Level(_) | Value::Weighted(_) | Value::Different(..) => {
            unreachable!("made of a query")
        }
    }
}

fn rows(facts: &Facts, scope: &[Scope]) -> String {
    let mut columns: Vec<String> = facts
        .fields
        .iter()
        .map(|(field, heading, times)| match times {
            1.0 => format!(r#""{field}" AS "{heading}""#),
            _ => format!(r#""{field}" * {} AS "{heading}""#, super::decimal(*times)),
        })
        .collect();
    let quoted = |expression: &str| super::words(expression, |word| format!(r#""{word}""#));
    columns.extend(
        facts.computed.iter().map(|(heading, e)| format!(r#"{} AS "{heading}""#, quoted(e))),
    );
    let condition = condition(scope, &[]);
    let ended = if facts.ended { r#" AND "sched_on_cpu_ns" > 0"# } else { "" };
    let newest =
        facts.newest.map_or(String::new(), |count| format!(" ORDER BY time DESC LIMIT {count}"));
    format!(r#"SELECT {} FROM "job_info" WHERE {condition}{ended}{newest}"#, columns.join(", "))
}

fn condition(scope: &[Scope], only: &[(&str, &str)]) -> String {
    let of_scope = |scope: &Scope| match scope {
        Scope::One(tag) | Scope::AnyOf(tag) => format!(r#""{tag}" =~ /^${{{tag}:regex}}$/"#),
        Scope::Not(tag, value) => format!(r#""{tag}" != '{value}'"#),
    };
    let mut all = conditions(scope, only, of_scope, |tag, value| format!(r#""{tag}" = '{value}'"#));
    all.push("$timeFilter".into());
    all.join(" AND ")
}

fn groups(step: Option<&str>, by: &[&str]) -> String {
    let time = step.map(|step| format!("time({step})"));
    let all: Vec<String> =
        time.into_iter().chain(by.iter().map(|tag| format!(r#""{tag}""#))).collect();
    if all.is_empty() { String::new() } else { format!(" GROUP BY {}", all.join(", ")) }
}

/// Whether no line means zero: nothing was read, written, sent, received or faulted in the interval.
fn is_rest_zero(term: &Term) -> bool {
    let counts = matches!(term.value, Value::Rate(_) | Value::Sum(_));
    counts && ["job_block", "job_fault", "job_net"].contains(&term.of)
}

/// This edition.
pub const EDITION: Edition = Edition {
    key: "influxql",
    name: "InfluxQL",
    source: "influxdb",
    target,
    variable,
    facts: true,
    legend_by_labels: false,
};
