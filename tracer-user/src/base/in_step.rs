//! Two lists in the same order, walked side by side: no search for each entry.

use std::{iter::Peekable, ptr};

/// Entries in the order of their keys, of which those of greater and greater keys are asked for.
pub struct InStep<I: Iterator>(Peekable<I>);

impl<'a, K: Ord + 'a, V, I: Iterator<Item = (&'a K, V)>> InStep<I> {
    /// From the first on.
    pub fn new(entries: I) -> Self {
        Self(entries.peekable())
    }

    /// The entry of `key`, which is greater than all that were asked for before.
    pub fn of(&mut self, key: &K) -> Option<V> {
        // Mostly both lists have the very same key.
        while self.0.next_if(|(at, _)| !ptr::eq(*at, key) && *at < key).is_some() {}
        Some(self.0.next_if(|(at, _)| ptr::eq(*at, key) || *at == key)?.1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_entry_that_is_there_is_found() {
        let entries: BTreeMap<u32, u32> = (0..20).map(|key| (key * 3, key)).collect();
        let mut in_step = InStep::new(entries.iter());
        let found: Vec<_> = (1..100).filter_map(|key| in_step.of(&key)).copied().collect();
        assert_eq!(found, Vec::from_iter(1..20));
    }
}
