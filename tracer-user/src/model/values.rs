//! The values of a group, shared until somebody changes them: a snapshot, the one before and what remembers the last reading
//! hold those of a job that does nothing once.

use std::{
    ops::{Deref, DerefMut},
    slice,
    sync::Arc,
};

use super::group::Value;

/// Values in the order of their fields; a copy costs nothing until it is changed.
#[derive(Clone, Debug)]
pub struct Values(Arc<[Option<Value>]>);

impl Values {
    /// `count` of them, all unknown.
    pub fn unknown(count: usize) -> Self {
        std::iter::repeat_n(None, count).collect()
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl FromIterator<Option<Value>> for Values {
    fn from_iter<I: IntoIterator<Item = Option<Value>>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl Deref for Values {
    type Target = [Option<Value>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Values {
    fn deref_mut(&mut self) -> &mut Self::Target {
        Arc::make_mut(&mut self.0)
    }
}

impl<'a> IntoIterator for &'a Values {
    type Item = &'a Option<Value>;
    type IntoIter = slice::Iter<'a, Option<Value>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a mut Values {
    type Item = &'a mut Option<Value>;
    type IntoIter = slice::IterMut<'a, Option<Value>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_the_same_until_it_is_changed() {
        let first = Values::unknown(3);
        let mut copy = first.clone();
        assert!(Arc::ptr_eq(&first.0, &copy.0));
        copy[1] = Some(Value::Number(7));
        assert_eq!((&first[1], &copy[1]), (&None, &Some(Value::Number(7))));
        assert!(first != copy && first == Values::unknown(3));
    }
}
