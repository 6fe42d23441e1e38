//! Grafana's dashboards: described once (`job.rs`, `node.rs`, `cluster.rs`) and written in four query
//! languages. Pure: it gives texts; the chore and the tests write, compare and ask.

use anyhow::{Context, Result};
use serde_json::Value as Json;

pub mod cluster;
pub mod compose;
pub mod flux;
pub mod influxql;
pub mod job;
mod job_devices;
mod job_net;
mod job_waits;
mod json;
pub mod layout;
pub mod names;
pub mod node;
mod options;
mod panels;
pub mod promql;
mod readme;
pub mod spec;
pub mod sql;
#[cfg(test)]
mod tests;

pub use readme::sections;
use spec::{Ask, Dashboard, Look, Scope, Term, Variable};

/// The folder of the files, from the workspace's root.
pub const FOLDER: &str = "docs/grafana";

/// A query language, with the kind of data source that speaks it.
pub struct Edition {
    /// Ends the files' names and the dashboards' uids.
    pub key: &'static str,
    /// As people call it.
    pub name: &'static str,
    /// Grafana's name of the data source's kind.
    pub source: &'static str,
    /// A question in this language.
    pub target: fn(&Ask, &[Scope], Look) -> Json,
    /// What a variable asks.
    pub variable: fn(&Variable) -> Json,
    /// Whether texts are kept: `job_info`.
    pub facts: bool,
    /// Whether answers by tags have the tags as labels rather than in their names.
    pub legend_by_labels: bool,
}

/// A dashboard in a language.
pub struct Written {
    /// Its file's name.
    pub file: String,
    /// What it was made of.
    pub dashboard: Dashboard,
    /// The language.
    pub edition: &'static Edition,
    /// What is in it.
    pub json: Json,
}

impl Written {
    /// The file.
    ///
    /// # Errors
    /// Never in practice: what is in it was made here.
    pub fn text(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(&self.json)? + "\n")
    }
}

/// What gives a description.
type Make = fn() -> Dashboard;

/// All dashboards in all their editions.
///
/// # Errors
/// When one names a field or tag that is not in the tables, or its panels overlap.
pub fn all() -> Result<Vec<Written>> {
    let wanted: [(Make, &[&'static Edition]); 3] = [
        (job::dashboard, &[&influxql::EDITION, &flux::EDITION, &sql::EDITION, &promql::EDITION]),
        (node::dashboard, &[&influxql::EDITION]),
        (cluster::dashboard, &[&influxql::EDITION]),
    ];
    let mut all = Vec::new();
    for (make, editions) in wanted {
        for edition in editions {
            let dashboard = make();
            names::check(&dashboard).with_context(|| format!("dashboard {}", dashboard.title))?;
            let json = json::dashboard(&dashboard, edition)?;
            let file = format!("{}-{}.json", dashboard.title.to_lowercase(), edition.key);
            all.push(Written { file, dashboard, edition, json });
        }
    }
    Ok(all)
}

/// The answer's name in a query: one by tags is named by Grafana, of the tags' values.
fn name(ask: &Ask) -> &'static str {
    if ask.legend.contains('{') { "value" } else { ask.legend }
}

/// What narrows a query: the scopes, then tags that must have a value; each in the words of a language.
fn conditions(
    scope: &[Scope],
    only: &[(&str, &str)],
    of_scope: impl Fn(&Scope) -> String,
    equal: impl Fn(&str, &str) -> String,
) -> Vec<String> {
    let only = only.iter().map(|(tag, value)| equal(tag, value));
    scope.iter().map(of_scope).chain(only).collect()
}

/// The factor at the end of an expression.
fn times(term: &Term) -> String {
    if term.times == 1.0 { String::new() } else { format!(" * {}", decimal(term.times)) }
}

/// A number without an exponent, as all languages take it.
fn decimal(number: f64) -> String {
    let text = format!("{number:.20}");
    let text = text.trim_end_matches('0');
    if text.ends_with('.') { format!("{text}0") } else { text.to_owned() }
}

/// `expression` with its names rewritten.
fn words(expression: &str, rewrite: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    let mut word = String::new();
    for c in expression.chars().chain([' ']) {
        if c.is_ascii_alphanumeric() || c == '_' || c == '.' {
            word.push(c);
            continue;
        }
        let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic());
        text.push_str(&if is_name { rewrite(&word) } else { word.clone() });
        word.clear();
        text.push(c);
    }
    text.trim_end().to_owned()
}
