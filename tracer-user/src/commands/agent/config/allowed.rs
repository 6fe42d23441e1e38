//! What a key may be: its words in the file and in complaints, and the judging itself, from one bound.
//! Pure: the file and the flags are judged alike.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    path::PathBuf,
};

use clap::ValueEnum;
use serde::Serialize;

use super::Config;
use crate::{base::values::Time, resolve::SiteRule};

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One value, or a list on one line.
    Value,
    /// A table with names of the site's own; the example shows one entry.
    Map(&'static str),
    /// A list of tables; the example shows one, which may have these keys.
    Tables(&'static str, &'static [&'static str]),
}

/// What is wrong with a value of a configuration; nothing where all is well.
pub type Problems<T> = Box<dyn Fn(&T, &Config) -> Vec<String> + Send + Sync>;

/// What a key of type `T` may be.
pub struct Allowed<T> {
    /// In words.
    pub words: String,
    /// What it holds.
    pub shape: Shape,
    /// The judging.
    pub problems: Problems<T>,
}

/// What the type can hold, and no less.
pub fn any<T>(words: &str) -> Allowed<T> {
    Allowed { words: words.into(), shape: Shape::Value, problems: Box::new(|_, _| Vec::new()) }
}

/// Values for which `problem` finds none.
pub fn only<T>(
    words: impl Into<String>,
    problem: impl Fn(&T, &Config) -> Option<String> + Send + Sync + 'static,
) -> Allowed<T> {
    let problems = Box::new(move |value: &T, config: &Config| {
        problem(value, config).into_iter().collect::<Vec<_>>()
    });
    Allowed { words: words.into(), shape: Shape::Value, problems }
}

/// Both.
pub fn yes_or_no() -> Allowed<bool> {
    any("true or false")
}

/// `low` to `high`, both included.
pub fn within<T>(low: T, high: T) -> Allowed<T>
where
    T: PartialOrd + Display + Serialize + Send + Sync + 'static,
{
    only(format!("{} to {}", written(&low), written(&high)), move |value, _| {
        let is_within = low <= *value && *value <= high;
        (!is_within).then(|| format!("{value} is not from {low} to {high}"))
    })
}

/// Whole seconds from `low` to `high`.
pub fn whole_seconds(low: Time, high: Time) -> Allowed<Time> {
    let words = format!("whole seconds, {} to {}", written(&low), written(&high));
    only(words, move |time: &Time, _| {
        let is_allowed = time.0.subsec_nanos() == 0 && (low..=high).contains(time);
        let why = || format!("{time} is not a whole number of seconds from {low} to {high}");
        (!is_allowed).then(why)
    })
}

/// `low` and all above.
pub fn at_least<T>(low: T) -> Allowed<T>
where
    T: PartialOrd + Display + Serialize + Send + Sync + 'static,
{
    only(format!("{} or more", written(&low)), move |value, _| {
        (*value < low).then(|| format!("{value} is less than {low}"))
    })
}

/// Less than `slots` is.
pub fn below_slots() -> Allowed<u32> {
    only("0 to less than `slots`", |count, config| {
        let slots = config.slots;
        (*count >= slots).then(|| format!("{count} is not less than `slots`, which is {slots}"))
    })
}

/// One of the words of `T`.
pub fn one_of<T: ValueEnum>() -> Allowed<T> {
    let names = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    let names: Vec<_> = names.map(|value| format!("{:?}", value.get_name())).collect();
    any(&match names.as_slice() {
        [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
        names => names.concat(),
    })
}

/// A folder.
pub fn folder() -> Allowed<PathBuf> {
    only("an absolute path", |path: &PathBuf, _| {
        let why = || format!("{:?} does not begin with /", path.display().to_string());
        (!path.is_absolute()).then(why)
    })
}

/// A folder, or none.
pub fn folder_or_none() -> Allowed<PathBuf> {
    only("an absolute path, or empty for none", |path: &PathBuf, config| {
        if path.as_os_str().is_empty() { None } else { (folder().problems)(path, config).pop() }
    })
}

/// Names of the site's own, each with a value that `allowed` allows.
pub fn each<T: Send + Sync + 'static>(
    allowed: Allowed<T>,
    example: &'static str,
) -> Allowed<BTreeMap<String, T>> {
    let problems = Box::new(move |map: &BTreeMap<String, T>, config: &Config| {
        map.values().flat_map(|value| (allowed.problems)(value, config)).collect()
    });
    Allowed { words: allowed.words, shape: Shape::Map(example), problems }
}

/// Rules that can give an answer, each under a name of its own.
pub fn site_rules(words: &str, example: &'static str) -> Allowed<Vec<SiteRule>> {
    let problems = Box::new(|rules: &Vec<SiteRule>, _: &Config| {
        let distinct: BTreeSet<_> = rules.iter().map(|rule| &rule.name).collect();
        let twice =
            (distinct.len() != rules.len()).then(|| "two rules have the same name".to_owned());
        twice.into_iter().chain(rules.iter().filter_map(|rule| rule.compile().err())).collect()
    });
    Allowed { words: words.into(), shape: Shape::Tables(example, SiteRule::KEYS), problems }
}

/// `value` as the file has it.
fn written(value: &impl Serialize) -> String {
    toml::Value::try_from(value).map(|value| value.to_string()).unwrap_or_default()
}
