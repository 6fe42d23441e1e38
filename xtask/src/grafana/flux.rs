//! Questions in Flux, for InfluxDB 2.

use serde_json::{Value as Json, json};
use tracer_ebpf::table::Unit;

use super::{
    Edition, conditions, decimal, name,
    names::unit,
    spec::{Ask, Facts, Look, Scope, Term, Value, Variable, What},
};

/// Of the data source that was chosen, and the dashboard's range.
const FROM: &str =
    "from(bucket: v.defaultBucket)\n  |> range(start: v.timeRangeStart, stop: v.timeRangeStop)";

fn target(ask: &Ask, scope: &[Scope], _: Look) -> Json {
    json!({ "query": query(ask, scope) })
}

fn variable(variable: &Variable) -> Json {
    let (of, _) = variable.of;
    let mut conditions = vec![format!(r#"r._measurement == "{of}""#)];
    conditions.extend(variable.within.iter().map(condition));
    json!(format!(
        "import \"influxdata/influxdb/schema\"\n\nschema.tagValues(\n  bucket: v.defaultBucket,\n  \
         tag: \"{}\",\n  predicate: (r) => {},\n  start: v.timeRangeStart,\n  stop: v.timeRangeStop,\n)",
        variable.tag,
        conditions.join(" and ")
    ))
}

/// The question's query.
pub fn query(ask: &Ask, scope: &[Scope]) -> String {
    let name = name(ask);
    match &ask.what {
        What::OverTime(term, by) => value(term, by, scope, name, Some("v.windowPeriod")),
        What::Hourly(term, by) => value(term, by, scope, name, Some("1h")),
        What::Whole(term, by) => value(term, by, scope, name, None),
        What::Buckets(metric) => {
            let source = source("job_hist", &["n"], scope, &[("metric", metric)]);
            format!("{source}{}{}", window("sum", &["le"], Some("v.windowPeriod")), rename("value"))
        }
        What::Facts(facts) => rows(facts, scope),
    }
}

/// Points of these fields.
fn source(of: &str, fields: &[&str], scope: &[Scope], only: &[(&str, &str)]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|field| format!(r#"r._field == "{field}""#)).collect();
    let fields = match &fields[..] {
        [one] => one.clone(),
        more => format!("({})", more.join(" or ")),
    };
    let equal = |tag: &str, value: &str| format!(r#"r.{tag} == "{value}""#);
    let mut all = vec![format!(r#"r._measurement == "{of}""#), fields];
    all.extend(conditions(scope, only, condition, equal));
    format!("{FROM}\n  |> filter(fn: (r) => {})", all.join(" and "))
}

fn condition(scope: &Scope) -> String {
    match scope {
        Scope::One(tag) | Scope::AnyOf(tag) => format!("r.{tag} =~ /^${{{tag}:regex}}$/"),
        Scope::Not(tag, value) => format!(r#"r.{tag} != "{value}""#),
    }
}

/// One value for each step (or all of the time) and group. A step is told by its begin, as elsewhere.
fn window(how: &str, by: &[&str], step: Option<&str>) -> String {
    let group = format!("\n  |> group(columns: [{}])", listed(by));
    let reduce = match step {
        Some(step) => format!(
            "\n  |> aggregateWindow(every: {step}, fn: {how}, createEmpty: false, timeSrc: \"_start\")"
        ),
        None => format!("\n  |> {how}()"),
    };
    group + &reduce
}

fn listed(tags: &[&str]) -> String {
    tags.iter().map(|tag| format!("{tag:?}")).collect::<Vec<_>>().join(", ")
}

/// The value's column is named as the answer shall be.
fn rename(name: &str) -> String {
    format!("\n  |> rename(columns: {{_value: {name:?}}})")
}

fn map(expression: &str) -> String {
    format!("\n  |> map(fn: (r) => ({{r with _value: {expression}}}))")
}

fn value(term: &Term, by: &[&str], scope: &[Scope], name: &str, step: Option<&str>) -> String {
    let of = term.of;
    let one = |field: &str| source(of, &[field], scope, term.only);
    let base = match term.value {
        Value::Rate(field) => {
            let ns = nanoseconds(step);
            let per = match unit(of, field) {
                Ok(Unit::Nanoseconds) => "",
                _ => " * 1000000000.0",
            };
            let map = map(&format!("float(v: r._value) / {ns}{per}"));
            one(field) + &window("sum", by, step) + &map
        }
        Value::Sum(field) => one(field) + &window("sum", by, step),
        Value::Largest(field) => one(field) + &window("max", by, step),
        Value::Level(field) => {
            let mean = match step {
                Some(step) => format!(
                    "\n  |> aggregateWindow(every: {step}, fn: mean, createEmpty: false, timeSrc: \"_start\")"
                ),
                None => "\n  |> mean()".into(),
            };
            one(field) + &mean + &window("sum", by, step)
        }
        Value::Different(field, tag) => {
            one(field) + &window("last", &[tag], step) + &window("count", by, step)
        }
        Value::Ratio(a, b) => ratio(source(of, &[a, b], scope, term.only), a, b, by, step),
        Value::Product(a, b) => product(source(of, &[a, b], scope, term.only), a, b, by, step),
        Value::Weighted(field) => {
            let source = source(of, &[field, "interval_ns"], scope, term.only);
            let ns = nanoseconds(step);
            product(source, field, "interval_ns", by, step) + &map(&format!("r._value / {ns}"))
        }
    };
    let times = match term.times {
        1.0 => String::new(),
        times => map(&format!("float(v: r._value) * {}", decimal(times))),
    };
    base + &times + &rename(name)
}

/// Nanoseconds of the step.
fn nanoseconds(step: Option<&str>) -> String {
    match step {
        Some(step) => format!("float(v: int(v: {step}))"),
        None => "(float(v: uint(v: v.timeRangeStop)) - float(v: uint(v: v.timeRangeStart)))".into(),
    }
}

/// Sum by sum; the two stand in one row for that.
fn ratio(source: String, a: &str, b: &str, by: &[&str], step: Option<&str>) -> String {
    let time: &[&str] = if step.is_some() { &["_time"] } else { &[] };
    let keys: Vec<&str> = ["_field"].iter().chain(by).copied().collect();
    let rows: Vec<&str> = time.iter().chain(by).copied().collect();
    // Without a time and tags there is one row; it needs a key all the same.
    let (one, rows) = if rows.is_empty() {
        ("\n  |> map(fn: (r) => ({r with all: 0}))", vec!["all"])
    } else {
        ("", rows)
    };
    let keep: Vec<&str> = time.iter().chain(by).chain(&["_value"]).copied().collect();
    format!(
        "{source}{}{one}\n  |> group(columns: [{}])\n  |> pivot(rowKey: [{}], columnKey: [\"_field\"], valueColumn: \
         \"_value\"){}\n  |> keep(columns: [{}])",
        window("sum", &keys, step),
        listed(by),
        listed(&rows),
        map(&format!("float(v: r.{a}) / float(v: r.{b})")),
        listed(&keep),
    )
}

/// The sum of products of the two fields of a point.
fn product(source: String, a: &str, b: &str, by: &[&str], step: Option<&str>) -> String {
    format!(
        "{source}\n  |> pivot(rowKey: [\"_time\"], columnKey: [\"_field\"], valueColumn: \"_value\"){}{}",
        map(&format!("float(v: r.{a}) * float(v: r.{b})")),
        window("sum", by, step),
    )
}

fn rows(facts: &Facts, scope: &[Scope]) -> String {
    let fields: Vec<&str> = facts.fields.iter().map(|(field, ..)| *field).collect();
    let newest = facts.newest.map_or(String::new(), |n| {
        format!("\n  |> sort(columns: [\"_time\"], desc: true)\n  |> limit(n: {n})")
    });
    let keep: Vec<&str> = ["_time"].into_iter().chain(fields.iter().copied()).collect();
    format!(
        "{}\n  |> pivot(rowKey: [\"_time\"], columnKey: [\"_field\"], valueColumn: \"_value\")\n  |> group(){newest}\n  \
         |> keep(columns: [{}])",
        source("job_info", &fields, scope, &[]),
        listed(&keep)
    )
}

/// This edition.
pub const EDITION: Edition = Edition {
    key: "flux",
    name: "Flux",
    source: "influxdb",
    target,
    variable,
    facts: true,
    legend_by_labels: true,
};
