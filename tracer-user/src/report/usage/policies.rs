//! A site's policies: who holds more than he uses, by its own thresholds, which are a file that it edits.
//!
//! A policy is a fixed set of measures, each with a bound; no language. Pure: the file's text comes as an argument.

use std::{collections::BTreeMap, fmt::Write, path::Path};

use anyhow::Result;
use serde::{Deserialize, Deserializer, de::Error};

use super::{
    Row,
    measures::{MEASURES, Measure},
};
use crate::base::{config_file::ConfigFile, suggest, text::wrap};

/// Where a site has them.
pub const DEFAULT_FILE: &str = "/etc/jobtrace/policies.toml";
/// Width of the comments in the file.
const COLUMNS: usize = 94;

/// A measure as the file names it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Named(usize);

impl Named {
    fn measure(&self) -> &'static Measure {
        &MEASURES[self.0]
    }
}

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let at = MEASURES.iter().position(|measure| measure.name == name);
        at.map(Self).ok_or_else(|| {
            let cure = suggest::cure(&name, MEASURES.iter().map(|measure| measure.name));
            D::Error::custom(format!("unknown measure `{name}`{cure}"))
        })
    }
}

/// A bound: a number that something can be above or below.
struct Bound(f64);

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bound = f64::deserialize(from)?;
        match bound.is_finite() && bound >= 0.0 {
            true => Ok(Self(bound)),
            false => {
                Err(D::Error::custom(format!("{bound} is no bound: write a number from 0 on")))
            }
        }
    }
}

/// A policy: whoever keeps to all of its bounds is over it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Policy {
    says: String,
    #[serde(default)]
    above: BTreeMap<Named, Bound>,
    #[serde(default)]
    below: BTreeMap<Named, Bound>,
}

impl Policy {
    /// The numbers by which `row` is over it; `None` if it is not.
    fn find(&self, row: &Row, all: &Row) -> Option<String> {
        let above = self.above.iter().map(|(of, bound)| (of.measure(), bound.0, "above"));
        let below = self.below.iter().map(|(of, bound)| (of.measure(), bound.0, "below"));
        let numbers = above.chain(below).map(|(measure, bound, side)| {
            let value = (measure.of)(row, all)?;
            let is_over = if side == "above" { value > bound } else { value < bound };
            is_over.then(|| format!("{value:.1} {} ({side} {bound})", measure.words))
        });
        Some(numbers.collect::<Option<Vec<_>>>()?.join(", "))
    }
}

/// All policies of a file.
pub struct Policies(BTreeMap<String, Policy>);

impl Policies {
    /// Those in `text`, the file called `name`.
    ///
    /// # Errors
    /// When something in it is wrong: the message names the line.
    pub fn parse(text: &str, name: &Path) -> Result<Self> {
        let file = ConfigFile::parse(text, name)?;
        let policies: BTreeMap<String, Policy> = file.values(|_, why| why)?;
        let is_empty = |key: &str| {
            policies.get(key).is_some_and(|one| one.above.is_empty() && one.below.is_empty())
        };
        let empty = file.table().iter().filter(|(key, _)| is_empty(key.get_ref()));
        let complaint = |key: &str| {
            format!(
                "`{key}` has no bound: write above = {{ MEASURE = NUMBER }} or below = {{ MEASURE = NUMBER }}"
            )
        };
        let mistakes: Vec<_> =
            empty.map(|(key, _)| (key.span().start, complaint(key.get_ref()))).collect();
        file.refuse(&mistakes)?;
        Ok(Self(policies))
    }

    /// Notes in each of `rows` which policies it is over; gives a sentence for each.
    pub fn apply(&self, rows: &mut [Row]) -> Vec<String> {
        let mut all = Row::default();
        rows.iter().for_each(|row| all.add(row));
        let mut said = Vec::new();
        for (name, policy) in &self.0 {
            for row in rows.iter_mut() {
                let Some(numbers) = policy.find(row, &all) else { continue };
                row.policies.push(name.clone());
                let who = if row.key.is_empty() { "unknown" } else { &row.key };
                said.push(format!("{who} {}: {numbers}", policy.says));
            }
        }
        said
    }
}

/// The file that a package installs: thresholds that others have published.
pub fn default_file() -> String {
    let mut text = String::from(
        "\
# Policies for `jobtrace usage --by user` and `--by account`: it tells who is over one. Each table is a policy
# of the name in brackets. A row is over it when every measure below `above` is greater than its bound and every one
# below `below` less. Change the bounds to what suits your site, and remove what does not.
#
# The measures:
",
    );
    for Measure { name, help, .. } in &MEASURES {
        let _ = writeln!(text, "#   {name}: {help}");
    }
    for (source, name, says, bounds) in PUBLISHED {
        let source = wrap(source, COLUMNS).into_iter().map(|line| format!("# {line}\n"));
        let source: String = source.collect();
        let _ = write!(text, "\n{source}[{name}]\nsays = \"{says}\"\n{bounds}\n");
    }
    text
}

/// Where each policy is from, its name, what it says of whom, its bounds.
const PUBLISHED: &[(&str, &str, &str, &str)] = &[
    (
        "From job_defense_shield: less than 25 % of the GPUs used, from 50 hours and 2 % of all on.",
        "idle_gpus",
        "leaves GPUs idle",
        "above = { gpu_hours = 50, gpu_hours_of_all_percent = 2 }\nbelow = { gpus_used_percent = 25 }",
    ),
    (
        "From job_defense_shield: less than 60 % of the cores used, from 50 hours and 2 % of all on.",
        "idle_cores",
        "leaves cores idle",
        "above = { core_hours = 50, core_hours_of_all_percent = 2 }\nbelow = { cores_used_percent = 60 }",
    ),
    (
        "From job_defense_shield: less than 35 % of the memory needed, from 50 TB hours (46,566 GiB hours) on.",
        "memory_not_needed",
        "asks for memory that is not needed",
        "above = { memory_gib_hours = 46566 }\nbelow = { memory_needed_percent = 35 }",
    ),
    (
        "Work without a GPU that takes cores from those who need them to feed one; what was alone on its node kept \
         nobody waiting.",
        "cpu_only_on_gpu_nodes",
        "computes without GPUs on nodes that have some",
        "above = { cpu_only_beside_core_hours = 50 }",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Policies> {
        Policies::parse(text, Path::new("p.toml"))
    }

    fn rows() -> [Row; 3] {
        let row = |key: &str, held: f64, used: f64| Row {
            key: key.to_owned(),
            gpu_hours_held: held,
            gpu_hours_used: used,
            ..Row::default()
        };
        [row("ada", 100.0, 10.0), row("bob", 60.0, 15.0), row("eve", 0.0, 0.0)]
    }

    #[test]
    fn who_is_over_every_bound_is_told_with_the_numbers() {
        let text = "[gpus]\nsays = 'leaves GPUs idle'\nabove = { gpu_hours = 50 }\nbelow.gpus_used_percent = 25\n";
        let (policies, mut rows) = (parse(text).unwrap(), rows());
        assert_eq!(
            policies.apply(&mut rows),
            [
                "ada leaves GPUs idle: 100.0 GPU hours (above 50), 10.0 % of the GPUs used (below 25)"
            ]
        );
        let over: Vec<_> = rows.iter().map(|row| row.policies.join(" ")).collect();
        assert_eq!(over, ["gpus", "", ""], "bob is at the bound, eve has none to use");
        let share = "[a]\nsays = 'has most'\nabove = { gpu_hours_of_all_percent = 50 }\n";
        let said = parse(share).unwrap().apply(&mut rows);
        assert_eq!(said, ["ada has most: 62.5 % of all GPU hours (above 50)"]);
    }

    #[test]
    fn mistakes_are_told_with_their_lines() {
        for (text, expected) in [
            ("[a]\nsays = 'x'\n", "p.toml:1:2: `a` has no bound: write above"),
            (
                "[a]\nsays = 'x'\nabove = { gpu_hour = 5 }\n",
                "unknown measure `gpu_hour`, did you mean `gpu_hours`?",
            ),
            ("[a]\nsays = 'x'\nabove = { jobs = -1 }\n", "p.toml:3:18: -1 is no bound"),
            ("[a]\nsays = 'x'\nabove = { jobs = nan }\n", "NaN is no bound"),
            ("[a]\nsays = 'x'\nabove = { jobs = 'many' }\n", "p.toml:3:18: invalid type"),
            ("[a]\nabove = { jobs = 1 }\n", "missing field `says`"),
            ("[a]\nsays = 'x'\nover = { jobs = 1 }\n", "p.toml:3:1: unknown field `over`"),
            ("a = 1\n", "p.toml:1:5: invalid type"),
            ("[a\n", "p.toml:1:"),
        ] {
            let error = parse(text).err().map(|error| format!("{error:#}")).unwrap_or_default();
            assert!(error.starts_with("p.toml:") && error.contains(expected), "{text}: {error}");
        }
        assert!(parse("").unwrap().apply(&mut rows()).is_empty());
    }

    #[test]
    fn the_file_of_the_package_is_read_and_names_every_measure() {
        let text = default_file();
        let policies = parse(&text).unwrap();
        assert_eq!(policies.0.len(), PUBLISHED.len());
        assert!(MEASURES.iter().all(|one| text.contains(&format!("#   {}: ", one.name))));
        assert!(policies.apply(&mut rows()).iter().any(|said| said.starts_with("ada leaves GPUs")));
    }
}
