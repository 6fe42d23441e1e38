//! How a field's key is written: as it is or cleaned, and by which mark it is told from others. Of our own names, each of
//! which comes in every line of its measurement, it is found out once.

use std::{borrow::Cow, cell::RefCell};

use super::{line::is_plain, seen::mark};
use crate::model::point::Name;

/// Our own names that are remembered at most; beyond them some are looked at again.
const PLACES: usize = 1024;

/// What is known of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// It is written as it is.
    pub is_plain: bool,
    /// What it leaves in [`Seen`](super::seen::Seen).
    pub mark: u16,
}

impl Key {
    fn of(key: &str) -> Self {
        Self { is_plain: is_plain(key), mark: mark(key) }
    }

    /// What is known of `key`. A name that lives as long as the program never changes: its address tells which it is.
    pub fn of_name(key: &Name) -> Self {
        match key {
            Cow::Borrowed(own) => OWN.with_borrow_mut(|known| known.of(own)),
            Cow::Owned(key) => Self::of(key),
        }
    }
}

thread_local! {
    static OWN: RefCell<Known> = RefCell::default();
}

/// Names with what is known of them, each at the place that its address tells.
#[derive(Default)]
struct Known(Vec<((usize, usize), Option<Key>)>);

impl Known {
    fn of(&mut self, own: &'static str) -> Key {
        if self.0.is_empty() {
            self.0 = vec![((0, 0), None); PLACES];
        }
        let name = (own.as_ptr().addr(), own.len());
        // Names lie side by side: a few bytes between their addresses are spread over all places.
        let place = name.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - PLACES.ilog2());
        match &mut self.0[place] {
            (known, Some(key)) if *known == name => *key,
            entry => {
                let key = Key::of(own);
                *entry = (name, Some(key));
                key
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_of_a_name_is_what_a_look_at_it_tells() {
        let long: &'static str = "on_cpu_ns,time=_x é".repeat(200).leak();
        // More than there are places for, many of them the begin of another.
        let names: Vec<&'static str> = (0..long.len())
            .flat_map(|begin| [1, 4, 9].map(|bytes| long.get(begin..begin + bytes)))
            .flatten()
            .collect();
        assert!(names.len() > 4 * PLACES);
        for _ in 0..2 {
            for name in &names {
                assert_eq!(Key::of_name(&Cow::Borrowed(name)), Key::of(name), "{name}");
                assert_eq!(Key::of_name(&Cow::Owned((*name).into())), Key::of(name));
            }
        }
    }
}
