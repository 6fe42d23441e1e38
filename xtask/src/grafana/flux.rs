//! Questions in Flux, for InfluxDB 2.

use serde_json::{Value as Json, json};
use tracer_ebpf::table::Unit;

use super::{
    Edition, decimal,
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
    let name = if ask.legend.contains('{') { "value" } else { ask.legend };
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
    let mut conditions = vec![format!(r#"r._measurement == "{of}""#), fields];
    conditions.extend(scope.iter().map(condition));
    conditions.extend(only.iter().map(|(tag, value)| format!(r#"r.{tag} == "{value}""#)));
    format!("{FROM}\n  |> filter(fn: (r) => {})", conditions.join(" and "))
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
            // Nanoseconds of the step.
            let ns = match step {
                Some(step) => format!("float(v: int(v: {step}))"),
                None => {
                    "(float(v: uint(v: v.timeRangeStop)) - float(v: uint(v: v.timeRangeStart)))"
                        .into()
                }
            };
            let per = match unit(of, field) {
                Ok(Unit::Nanoseconds) => "",
                _ => " * 1000000000.0",
            };
            let map = map(&format!("float(v: r._value) / {ns}{per}"));
            one(field) + &window("sum", by, step) + &map
        }
        Value::Sum(field) => one(field) + &window("sum", by, step),
        Value::Largest(field) => one(field) + &window("max", by, step),
        Value::Level(field) | Value::Series(field) => {
            let (each, all) = match term.value {
                Value::Level(_) => ("mean", "sum"),
                _ => ("last", "count"),
            };
            let each = match step {
                Some(step) => format!(
                    "\n  |> aggregateWindow(every: {step}, fn: {each}, createEmpty: false, timeSrc: \"_start\")"
                ),
                None => format!("\n  |> {each}()"),
            };
            one(field) + &each + &window(all, by, step)
        }
        Value::Ratio(a, b) | Value::Product(a, b) => {
            let mut keys = vec!["_field"];
            keys.extend(by);
            let time: &[&str] = if step.is_some() { &["_time"] } else { &[] };
            let rows: Vec<&str> = time.iter().chain(by).copied().collect();
            let (window, sign) = match term.value {
                Value::Ratio(..) => (window("sum", &keys, step), "/"),
                _ => (String::new(), "*"),
            };
            let rows = match term.value {
                Value::Ratio(..) => listed(&rows),
                _ => "\"_time\"".into(),
            };
            let pivot = format!(
                "\n  |> pivot(rowKey: [{rows}], columnKey: [\"_field\"], valueColumn: \"_value\")"
            );
            let group = format!("\n  |> group(columns: [{}])", listed(by));
            let map = map(&format!("float(v: r.{a}) {sign} float(v: r.{b})"));
            let keep: Vec<&str> = time.iter().chain(by).chain(&["_value"]).copied().collect();
            let keep = format!("\n  |> keep(columns: [{}])", listed(&keep));
            let again = match term.value {
                Value::Product(..) => self::window("sum", by, step),
                _ => String::new(),
            };
            source(of, &[a, b], scope, term.only)
                + &window
                + &group
                + &pivot
                + &map
                + &again
                + &keep
        }
    };
    let times = match term.times {
        1.0 => String::new(),
        times => map(&format!("float(v: r._value) * {}", decimal(times))),
    };
    base + &times + &rename(name)
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
