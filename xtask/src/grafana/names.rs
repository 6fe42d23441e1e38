//! Every measurement, field and tag that a dashboard names must be in the crate's own tables.

use anyhow::{Result, bail, ensure};
use jobtrace::model::{hist::QUANTILES, tables};
use tracer_ebpf::table::{Field, Kind, Measurement, Unit};

use super::spec::{Ask, Dashboard, Facts, Scope, Term, Value, What};

/// Tags of every line of a job.
const TAGS: [&str; 5] = ["cluster", "host", "job", "manager", "user"];
/// Tags of a device that its `uuid` settles. A column that no device has written (`parent`, without MIG) does
/// not exist in SQL.
const FOLLOWING: [&str; 3] = ["model", "vendor", "parent"];

/// The table of a measurement.
fn table(name: &str) -> Result<&'static Measurement> {
    match tables::ALL.into_iter().find(|table| table.name == name) {
        Some(table) => Ok(table),
        None => bail!("{name} is no measurement of model/tables.rs"),
    }
}

/// The field of which `name` is the whole or, of a histogram, a part.
fn field(table: &'static Measurement, name: &str) -> Option<&'static Field> {
    let mut parts = vec!["count", "sum", "min", "max"];
    parts.extend(QUANTILES.iter().map(|(part, _)| *part));
    table.fields.iter().find(|field| match field.kind {
        Kind::Histogram => name
            .strip_prefix(field.name)
            .and_then(|rest| rest.strip_prefix('_'))
            .is_some_and(|part| parts.contains(&part)),
        _ => field.name == name,
    })
}

/// The unit in which a field is written, where a table or its name tells it.
///
/// # Errors
/// When it is no field of the measurement.
pub fn unit(measurement: &str, name: &str) -> Result<Unit> {
    let table = table(measurement)?;
    if name == tables::INTERVAL.name {
        return Ok(tables::INTERVAL.unit);
    }
    match field(table, name) {
        Some(_) if name.ends_with("_count") => Ok(Unit::Count),
        Some(field) => Ok(field.unit),
        None => bail!("{measurement} has no field {name}: see docs/METRICS.md"),
    }
}

/// Tags of the measurement's own that tell its series apart, beside every job's.
pub fn own_tags(measurement: &str) -> impl Iterator<Item = &'static str> {
    let tags = table(measurement).map_or(&[][..], |table| table.tags);
    tags.iter().copied().filter(|tag| !FOLLOWING.contains(tag))
}

/// Checks that the measurement has the tag.
fn tag(measurement: &str, name: &str) -> Result<()> {
    let own: &[&str] = match measurement {
        "job_info" => &[],
        "job_hist" => &["metric", "le"],
        other => table(other)?.tags,
    };
    ensure!(TAGS.contains(&name) || own.contains(&name), "{measurement} has no tag {name}");
    Ok(())
}

/// Checks that there is such a histogram, `sched.run_queue_wait_ns`.
fn metric(name: &str) -> Result<()> {
    let known = tables::ALL.into_iter().any(|table| {
        let of_it = name.strip_prefix(table.key).and_then(|rest| rest.strip_prefix('.'));
        of_it.is_some_and(|name| {
            table.fields.iter().any(|field| field.kind == Kind::Histogram && field.name == name)
        })
    });
    ensure!(known, "{name} is no histogram of model/tables.rs");
    Ok(())
}

/// Checks a field of `job_info`: a fact, or a total that the agent writes at the job's end.
fn fact(name: &str) -> Result<()> {
    let is_fact = tables::FACTS.iter().any(|fact| fact.name == name);
    let is_total = || {
        tables::ALL.into_iter().any(|table| {
            let parts: Vec<_> = match tables::total_parts(table) {
                [] => vec![None],
                parts => parts.iter().map(|part| Some(*part)).collect(),
            };
            let is_it = |field, part| tables::total_name(table, part, field) == name;
            table.fields.iter().any(|field| parts.iter().any(|part| is_it(field, *part)))
        })
    };
    ensure!(is_fact || is_total(), "job_info has no field {name}");
    Ok(())
}

fn facts(facts: &Facts) -> Result<()> {
    facts.fields.iter().try_for_each(|(name, ..)| fact(name))?;
    let words = facts.computed.iter().flat_map(|(_, expression)| {
        expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.')
    });
    let names = words.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()));
    names.into_iter().try_for_each(fact)
}

fn term(term: &Term, by: &[&'static str], scope: &[Scope]) -> Result<()> {
    for name in term.value.fields() {
        let unit = unit(term.of, name)?;
        if let (Value::Rate(_), Unit::PartsPerMillion) = (term.value, unit) {
            bail!("{name} of {} is a ratio: it has no rate", term.of);
        }
    }
    if let Value::Different(_, name) = term.value {
        tag(term.of, name)?;
        ensure!(by.is_empty(), "values of {name} are counted over all, not by {by:?}");
    }
    let named = term.only.iter().map(|(key, _)| *key);
    named
        .chain(by.iter().copied())
        .chain(scope.iter().map(Scope::tag))
        .try_for_each(|key| tag(term.of, key))
}

/// Checks one question.
///
/// # Errors
/// When it names what the tables lack.
pub fn check_ask(ask: &Ask, scope: &[Scope]) -> Result<()> {
    match &ask.what {
        What::OverTime(asked, by) | What::Hourly(asked, by) | What::Whole(asked, by) => {
            for word in ask.legend.split('{').skip(1) {
                let name = word.split('}').next().unwrap_or_default();
                ensure!(by.contains(&name), "{:?} names a tag that is not asked for", ask.legend);
            }
            term(asked, by, scope)
        }
        What::Buckets(name) => metric(name),
        What::Facts(asked) => facts(asked),
    }
}

/// Checks all that a dashboard asks and offers.
///
/// # Errors
/// When it names what the tables lack.
pub fn check(dashboard: &Dashboard) -> Result<()> {
    for variable in dashboard.variables {
        let (of, name) = variable.of;
        tag(of, variable.tag)?;
        variable.within.iter().try_for_each(|scope| tag(of, scope.tag()))?;
        if of == "job_info" { fact(name)? } else { unit(of, name).map(drop)? }
    }
    let asks = dashboard.rows.iter().flat_map(|row| &row.panels).flat_map(|panel| &panel.asks);
    asks.into_iter().try_for_each(|ask| check_ask(ask, dashboard.scope))
}

/// The fields and measurement that a question is about, of all but buckets and facts.
pub fn term_of(ask: &Ask) -> Option<Term> {
    match &ask.what {
        What::OverTime(term, _) | What::Hourly(term, _) | What::Whole(term, _) => Some(*term),
        What::Buckets(_) | What::Facts(_) => None,
    }
}
