//! Names, and sets of them, each kept once.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use crate::model::software_text::{Named, Names as Parsed, parse};

/// A name, by its place.
pub(super) type NameId = u32;
/// A set of names with their versions, by its place.
pub(super) type SetId = u32;

/// Names and sets.
#[derive(Debug, Default)]
pub(super) struct Names {
    names: Vec<String>,
    places: HashMap<String, NameId>,
    sets: Vec<Set>,
    of_text: HashMap<String, SetId>,
}

/// A set.
#[derive(Debug)]
struct Set {
    named: Vec<(NameId, NameId)>,
    /// Whether there is more than has names.
    has_more: bool,
}

/// Where the names and sets of another are now.
pub(super) struct Places {
    names: Vec<NameId>,
    sets: Vec<SetId>,
}

impl Places {
    pub fn name(&self, id: NameId) -> NameId {
        self.names[id as usize]
    }

    pub fn set(&self, id: SetId) -> SetId {
        self.sets[id as usize]
    }
}

impl Names {
    /// The place of `name`.
    pub fn name(&mut self, name: &str) -> NameId {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = self.names.len() as NameId;
        self.names.push(name.to_owned());
        self.places.insert(name.to_owned(), place);
        place
    }

    /// The name at a place.
    pub fn text(&self, id: NameId) -> &str {
        &self.names[id as usize]
    }

    /// The place of the set that `text` names; no version is the empty one.
    pub fn set(&mut self, text: &str) -> SetId {
        if let Some(place) = self.of_text.get(text) {
            return *place;
        }
        let Parsed { named, others } = parse(text);
        let pair = |of: &Named| (self.name(of.name), self.name(of.version.unwrap_or_default()));
        let set = Set { named: named.iter().map(pair).collect(), has_more: others > 0 };
        let place = self.sets.len() as SetId;
        self.sets.push(set);
        self.of_text.insert(text.to_owned(), place);
        place
    }

    /// Names and versions in a set.
    pub fn of_set(&self, id: SetId) -> impl Iterator<Item = (NameId, NameId)> + '_ {
        self.sets[id as usize].named.iter().copied()
    }

    /// Whether what ran was more than the names in a set.
    pub fn has_more(&self, id: SetId) -> bool {
        self.sets[id as usize].has_more
    }

    /// Takes over those of `more`.
    pub fn merge(&mut self, more: Self) -> Places {
        let names = more.names.iter().map(|name| self.name(name)).collect();
        let mut sets = vec![0; more.sets.len()];
        for (text, place) in &more.of_text {
            sets[*place as usize] = self.set(text);
        }
        Places { names, sets }
    }
}

/// A number for `value`.
pub(super) fn hashed(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
