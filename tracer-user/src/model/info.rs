//! The facts of a job: `job_info` and what the summary and the JSON begin and end with.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use tracer_ebpf::table::Unit;

use super::{
    point::{FieldValue, Name},
    tables::{FACTS, Fact, fact},
};
use crate::base::few::push_few;

/// What is known of a job when it starts.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobInfo {
    /// Name given by the user, or the command's.
    pub name: String,
    /// Owner's name; empty where unknown.
    pub user: String,
    /// Owner's number.
    pub uid: u32,
    /// The command with its arguments, as a shell would take it.
    pub command: String,
    /// Nanoseconds since the Unix epoch.
    pub start_wall_ns: u64,
}

impl JobInfo {
    /// What `job_info` tells of it; neither its user, who is a tag, nor what is empty.
    pub fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        facts.set_text(const { fact("name") }, &self.name);
        facts.set(const { fact("uid") }, u64::from(self.uid));
        facts.set_text(const { fact("command") }, &self.command);
        let start = Some(self.start_wall_ns).filter(|start| *start != 0);
        facts.set(const { fact("start") }, start);
        facts
    }
}

/// Facts of a job by the rows of their table; each where known. In the order of their names: most jobs have a few, for
/// which a node of a tree is four times too large.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts(Vec<(&'static str, FieldValue)>);

impl Facts {
    /// Sets a number; `None`: it is unknown.
    pub fn set(&mut self, fact: &'static Fact, number: impl Into<Option<u64>>) {
        debug_assert!(fact.unit.is_some_and(|unit| unit.per_public() == 1), "{}", fact.name);
        match number.into() {
            Some(number) => self.insert(fact.name, FieldValue::Integer(number)),
            None => self.remove(fact),
        }
    }

    fn insert(&mut self, name: &'static str, value: FieldValue) {
        match self.find(name) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => {
                push_few(&mut self.0, (name, value));
                self.0[at..].rotate_right(1);
            }
        }
    }

    /// Where the fact `name` is, or would be.
    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by_key(&name, |(name, _)| *name)
    }

    fn get(&self, fact: &Fact) -> Option<&FieldValue> {
        self.find(fact.name).ok().map(|at| &self.0[at].1)
    }

    /// Sets a text, if it is not empty.
    pub fn set_text(&mut self, fact: &'static Fact, text: &str) {
        debug_assert_eq!(fact.unit, None::<Unit>, "{}", fact.name);
        if !text.is_empty() {
            self.insert(fact.name, FieldValue::Text(text.to_owned()));
        }
    }

    /// Forgets a fact.
    pub fn remove(&mut self, fact: &Fact) {
        if let Ok(at) = self.find(fact.name) {
            self.0.remove(at);
        }
    }

    /// Whether the fact is known.
    pub fn has(&self, fact: &Fact) -> bool {
        self.get(fact).is_some()
    }

    /// A number; `None` where it is unknown.
    pub fn number(&self, fact: &Fact) -> Option<u64> {
        match self.get(fact) {
            Some(FieldValue::Integer(number)) => Some(*number),
            _ => None,
        }
    }

    /// A text; empty where it is unknown.
    pub fn text(&self, fact: &Fact) -> &str {
        match self.get(fact) {
            Some(FieldValue::Text(text)) => text,
            _ => "",
        }
    }

    /// Takes over what `other` knows.
    pub fn extend(&mut self, other: &Self) {
        other.0.iter().for_each(|(name, value)| self.insert(name, value.clone()));
    }

    /// As fields, in the order of the table.
    pub fn fields(&self) -> impl Iterator<Item = (Name, FieldValue)> + '_ {
        let known = |fact: &Fact| Some((fact.name.into(), self.get(fact)?.clone()));
        FACTS.iter().filter_map(known)
    }
}

impl From<&Facts> for JobInfo {
    /// What the facts tell of its begin. They do not name its user, whom the job names.
    fn from(facts: &Facts) -> Self {
        Self {
            name: facts.text(const { fact("name") }).to_owned(),
            user: String::new(),
            uid: facts
                .number(const { fact("uid") })
                .and_then(|uid| uid.try_into().ok())
                .unwrap_or(0),
            command: facts.text(const { fact("command") }).to_owned(),
            start_wall_ns: facts.number(const { fact("start") }).unwrap_or(0),
        }
    }
}

/// The form in JSON: `{"name":"md","uid":1000}`.
impl Serialize for Facts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known = FACTS.iter().filter_map(|fact| Some((fact.name, self.get(fact)?)));
        let told = known.map(|(name, value)| match value {
            FieldValue::Text(text) => (name, Told::Text(text.clone())),
            FieldValue::Integer(number) => (name, Told::Number(*number)),
            FieldValue::Float(_) => unreachable!("no fact is a float: `Facts::set`"),
        });
        serializer.collect_map(told)
    }
}

/// What this program has no row for is left out: a later one wrote it.
impl<'de> Deserialize<'de> for Facts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let told = BTreeMap::<String, serde_json::Value>::deserialize(deserializer)?;
        let mut facts = Self::default();
        for fact in FACTS {
            let Some(value) = told.get(fact.name) else { continue };
            let value = match (fact.unit, value.as_u64(), value.as_str()) {
                (Some(_), Some(number), _) => FieldValue::Integer(number),
                (None, _, Some(text)) => FieldValue::Text(text.to_owned()),
                _ => return Err(D::Error::custom(format!("{} is of another kind", fact.name))),
            };
            facts.insert(fact.name, value);
        }
        Ok(facts)
    }
}

/// A fact as JSON has it.
#[derive(Serialize)]
#[serde(untagged)]
enum Told {
    Number(u64),
    Text(String),
}

/// How a command ended: one of the two, the other null; an absent one is damage. Fields that a later program adds are
/// left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Its status, where it exited.
    #[serde(deserialize_with = "Option::deserialize")]
    pub code: Option<i32>,
    /// The signal's number, where one ended it.
    #[serde(deserialize_with = "Option::deserialize")]
    pub signal: Option<i32>,
}

impl Exit {
    /// The status a shell would show: the code, or 128 + signal.
    pub fn status(&self) -> i32 {
        // A recording may name any signal.
        self.code.or(self.signal.map(|signal| signal.saturating_add(128))).unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_may_name_any_signal() {
        let status = |code, signal| Exit { code, signal }.status();
        assert_eq!(status(Some(3), Some(9)), 3);
        assert_eq!(status(None, Some(9)), 137);
        assert_eq!(status(None, Some(i32::MAX)), i32::MAX);
        assert_eq!(status(None, None), 1);
    }
}
