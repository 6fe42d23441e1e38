//! Queries as Grafana would send them: variables and macros replaced.

use jobtrace::model::tables;
use serde_json::Value as Json;
use tracer_ebpf::table::{Kind, Unit};
use xtask::grafana::{
    Written,
    spec::{Ask, Panel, Value, What},
};

use super::data::{Data, STEP_MS};

/// What was chosen at the dashboard's top, and the range of time.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Names of variables, and the values chosen.
    pub values: Vec<(String, Vec<String>)>,
    /// From and to, in milliseconds since the Unix epoch.
    pub range_ms: (i64, i64),
    /// The step, in milliseconds.
    pub step_ms: i64,
}

impl Choice {
    /// An InfluxQL query with all in it replaced.
    pub fn influxql(&self, query: &str) -> String {
        let (from, to) = self.range_ms;
        let mut text = self.named(query, "regex", |values| {
            let values: Vec<String> = values.iter().map(|value| escaped(value)).collect();
            if let [one] = &values[..] { one.clone() } else { format!("({})", values.join("|")) }
        });
        text = text.replace("$timeFilter", &format!("time >= {from}ms and time <= {to}ms"));
        self.steps(&text, &format!("{}ms", self.step_ms))
    }

    /// An SQL query with all in it replaced.
    pub fn sql(&self, query: &str) -> String {
        let (from, to) = self.range_ms;
        let text = self.named(query, "sqlstring", |values| {
            let quoted = values.iter().map(|value| format!("'{}'", value.replace('\'', "''")));
            quoted.collect::<Vec<_>>().join(",")
        });
        let seconds = self.step_ms / 1000;
        let bin = format!(
            "date_bin(interval '{seconds} second', time, timestamp '1970-01-01T00:00:00Z')"
        );
        let time = |ms: i64| format!("to_timestamp_millis({ms})");
        let filter = format!("time >= {} AND time <= {}", time(from), time(to));
        let text = text.replace("$__dateBin(time)", &bin).replace("$__timeFilter(time)", &filter);
        self.steps(&text, &format!("{}ms", self.step_ms))
    }

    /// A Flux query with Grafana's variables in it replaced; `v` is left.
    pub fn flux(&self, query: &str) -> String {
        self.named(query, "regex", |values| {
            let values: Vec<String> = values.iter().map(|value| escaped(value)).collect();
            if let [one] = &values[..] { one.clone() } else { format!("({})", values.join("|")) }
        })
    }

    /// A PromQL query with all in it replaced.
    pub fn promql(&self, query: &str) -> String {
        let mut text = query.to_owned();
        for (name, values) in &self.values {
            // The names in these tests need no escapes.
            assert!(
                values
                    .iter()
                    .all(|value| escaped(&value.replace('-', "")) == value.replace('-', ""))
            );
            let shown = if let [one] = &values[..] {
                one.clone()
            } else {
                format!("({})", values.join("|"))
            };
            text = text.replace(&format!("\"${name}\""), &format!("\"{shown}\""));
        }
        let (from, to) = self.range_ms;
        let text = text.replace("$__range_ms", &(to - from).to_string());
        let text = text.replace("$__range", &format!("{}ms", to - from));
        self.steps(&text, &format!("{}ms", self.step_ms))
    }

    /// The one value of a variable.
    pub fn one(&self, name: &str) -> Option<&str> {
        let (_, values) = self.values.iter().find(|(known, _)| known == name)?;
        if let [one] = &values[..] { Some(one) } else { None }
    }

    /// `$__interval_ms` and the like, longer names first.
    pub fn steps(&self, query: &str, interval: &str) -> String {
        let (from, to) = self.range_ms;
        let text = query
            .replace("$__interval_ms", &self.step_ms.to_string())
            .replace("$__interval", interval)
            .replace("$__range_ms", &(to - from).to_string())
            .replace("$__range", &format!("{}ms", to - from));
        let is_name =
            |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic() || "_{".contains(c));
        assert!(!text.split('$').skip(1).any(is_name), "a variable is left in {text}");
        text
    }

    /// `${name:format}` replaced.
    pub fn named(&self, query: &str, format: &str, show: impl Fn(&[String]) -> String) -> String {
        let mut text = query.to_owned();
        for (name, values) in &self.values {
            text = text.replace(&format!("${{{name}:{format}}}"), &show(values));
        }
        text
    }
}

/// As Grafana escapes a value within a regular expression.
fn escaped(value: &str) -> String {
    let mut text = String::new();
    for c in value.chars() {
        if r"\^$*+?.()|[]{}/".contains(c) {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// Each question of a dashboard with its panel, in words and in the file, and the query in the file.
pub fn questions(written: &Written) -> Vec<(&Panel, &Json, &Ask, &Json)> {
    let told = |ask: &&Ask| written.edition.facts || !matches!(ask.what, What::Facts(_));
    let panels = written.json["panels"].as_array().expect("panels");
    let mut all = Vec::new();
    for panel in written.dashboard.rows.iter().flat_map(|row| &row.panels) {
        let asks: Vec<&Ask> = panel.asks.iter().filter(told).collect();
        if asks.is_empty() {
            continue;
        }
        let is_it = |shown: &&Json| shown["type"] != "row" && shown["title"] == panel.title;
        let mut shown = panels.iter().filter(is_it);
        let shown = shown.next().unwrap_or_else(|| panic!("no panel {}", panel.title));
        let targets = shown["targets"].as_array().expect("targets");
        assert_eq!(targets.len(), asks.len(), "{}", panel.title);
        all.extend(asks.into_iter().zip(targets).map(|(ask, target)| (panel, shown, ask, target)));
    }
    all
}

/// What all values of the answer add up to: of sums and rates of one job.
pub fn expected_sum(ask: &Ask, data: &Data, job: &str) -> Option<f64> {
    let (term, field) = match &ask.what {
        What::Buckets(metric) => {
            return Some(data.sum("job_hist", job, "n", &[("metric", metric)]));
        }
        What::OverTime(term, _) | What::Whole(term, _) => match term.value {
            Value::Rate(field) | Value::Sum(field) => (term, field),
            _ => return None,
        },
        What::Hourly(..) | What::Facts(_) => return None,
    };
    let sum = data.sum(term.of, job, field, term.only);
    let is_ns = || {
        let table = tables::ALL.into_iter().find(|table| table.name == term.of)?;
        let part = |name: &str| field == name || field == format!("{name}_sum");
        let row = table.fields.iter().find(|row| match row.kind {
            Kind::Histogram => part(row.name),
            _ => row.name == field,
        })?;
        Some(row.unit == Unit::Nanoseconds)
    };
    let step_s = STEP_MS as f64 / 1000.0;
    match term.value {
        Value::Rate(_) if is_ns()? => Some(sum * 1e-9 / step_s),
        Value::Rate(_) => Some(sum / step_s),
        _ => Some(sum * term.times),
    }
}

/// Whether the answer adds up to what was written.
pub fn is_near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-6 * expected.abs().max(1e-6)
}

/// Variables that ask something.
pub fn variables(dashboard: &Json) -> Vec<&Json> {
    let all = dashboard["templating"]["list"].as_array().expect("variables");
    all.iter().filter(|variable| variable["type"] == "query").collect()
}
