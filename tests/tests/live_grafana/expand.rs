//! Queries as Grafana would send them: variables and macros replaced.

use serde_json::Value as Json;

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

/// The panels that ask something, of a dashboard's file.
pub fn panels(dashboard: &Json) -> Vec<&Json> {
    let all = dashboard["panels"].as_array().expect("panels");
    all.iter().filter(|panel| panel["type"] != "row").collect()
}

/// Variables that ask something.
pub fn variables(dashboard: &Json) -> Vec<&Json> {
    let all = dashboard["templating"]["list"].as_array().expect("variables");
    all.iter().filter(|variable| variable["type"] == "query").collect()
}
