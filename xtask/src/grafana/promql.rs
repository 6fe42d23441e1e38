//! Questions in PromQL, for VictoriaMetrics: it keeps a field as a metric `measurement_field` and no
//! texts. Points are an interval's own amounts, so they are added up, never taken for a growing counter.

use serde_json::{Value as Json, json};
use tracer_ebpf::table::Unit;

use super::{
    Edition, conditions,
    names::unit,
    spec::{Ask, Look, Scope, Term, Value, Variable, What},
    times,
};

fn target(ask: &Ask, scope: &[Scope], look: Look) -> Json {
    let timed = matches!(ask.what, What::OverTime(..) | What::Hourly(..) | What::Buckets(_));
    json!({
        "expr": query(ask, scope),
        "legendFormat": ask.legend.replace('{', "{{").replace('}', "}}"),
        "format": if look == Look::Table { "table" } else { "time_series" },
        "range": timed,
        "instant": !timed,
        "editorMode": "code",
    })
}

fn variable(variable: &Variable) -> Json {
    let (of, field) = variable.of;
    let chosen = selector(variable.within, &[]);
    json!(format!("label_values({of}_{field}{chosen}, {})", variable.tag))
}

/// The question's query.
pub fn query(ask: &Ask, scope: &[Scope]) -> String {
    match &ask.what {
        What::OverTime(term, by) => value(term, by, scope, "$__interval", "$__interval_ms"),
        What::Hourly(term, by) => value(term, by, scope, "1h", "3600000"),
        What::Whole(term, by) => value(term, by, scope, "$__range", "$__range_ms"),
        What::Buckets(metric) => format!(
            "sum by (le) (sum_over_time(job_hist_n{}[$__interval]))",
            selector(scope, &[("metric", metric)])
        ),
        What::Facts(_) => unreachable!("no texts are kept: the panel is left out"),
    }
}

fn value(term: &Term, by: &[&str], scope: &[Scope], step: &str, ms: &str) -> String {
    let chosen = selector(scope, term.only);
    let of = term.of;
    let by = if by.is_empty() { String::new() } else { format!(" by ({})", by.join(", ")) };
    let over = |all: &str, each: &str, field: &str| {
        format!("{all}{by} ({each}_over_time({of}_{field}{chosen}[{step}]))")
    };
    let base = match term.value {
        Value::Rate(field) => {
            let sum = over("sum", "sum", field);
            match unit(of, field) {
                Ok(Unit::Nanoseconds) => format!("{sum} / {ms} / 1000000"),
                _ => format!("{sum} / {ms} * 1000"),
            }
        }
        Value::Sum(field) => over("sum", "sum", field),
        Value::Level(field) => over("sum", "avg", field),
        Value::Largest(field) => over("max", "max", field),
        Value::Different(field, tag) => {
            format!("count(count by ({tag}) (last_over_time({of}_{field}{chosen}[{step}])))")
        }
        Value::Ratio(a, b) => format!("{} / {}", over("sum", "sum", a), over("sum", "sum", b)),
        Value::Product(..) | Value::Weighted(_) => {
            unreachable!("one metric has no two fields; no dashboard of this edition asks so")
        }
    };
    base + &times(term)
}

/// Grafana escapes what it puts between the quotes.
fn selector(scope: &[Scope], only: &[(&str, &str)]) -> String {
    let of_scope = |scope: &Scope| match scope {
        Scope::One(tag) => format!(r#"{tag}="${tag}""#),
        Scope::AnyOf(tag) => format!(r#"{tag}=~"${tag}""#),
        Scope::Not(tag, value) => format!(r#"{tag}!="{value}""#),
    };
    let all = conditions(scope, only, of_scope, |tag, value| format!(r#"{tag}="{value}""#));
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}

/// This edition.
pub const EDITION: Edition = Edition {
    key: "promql",
    name: "PromQL",
    source: "prometheus",
    target,
    variable,
    facts: false,
    legend_by_labels: false,
};
