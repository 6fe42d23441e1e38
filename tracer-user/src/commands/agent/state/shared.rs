//! What the state would hold twice. A job that was counted from its begin by one lease did what that lease counted, so
//! most of its values are those reported of the lease: they are named by their places there.

use std::mem;

use anyhow::{Context, Result};

use crate::model::group::Group;

/// Where a group stands among a job's values and among those of its lease.
pub type Place = (usize, usize);

/// Takes from `totals` what `of_lease` says as well, and gives the places, in their order.
pub fn take_out(totals: &mut Vec<Group>, of_lease: &[Group]) -> Vec<Place> {
    let mut places = Vec::new();
    // Both are in one order, nearly always.
    let mut next = 0;
    for (at, group) in mem::take(totals).into_iter().enumerate() {
        let after = of_lease.get(next..).unwrap_or_default().iter();
        match after.enumerate().find(|(_, other)| **other == group) {
            Some((further, _)) => {
                places.push((at, next + further));
                next += further + 1;
            }
            None => totals.push(group),
        }
    }
    places
}

/// Puts it back.
///
/// # Errors
/// When there is no such place.
pub fn put_back(totals: &mut Vec<Group>, of_lease: &[Group], places: &[Place]) -> Result<()> {
    for (at, there) in places {
        let group = of_lease.get(*there).filter(|_| *at <= totals.len());
        totals.insert(*at, group.context("values are at a place that is none")?.clone());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::tables::{BLOCK, Block};

    fn group((device, ops): (u8, u64)) -> Group {
        let mut group = Group::unknown(&BLOCK, vec![String::new(); BLOCK.tags.len()]);
        group.tags[0] = device.to_string();
        group.set(Block::ops, ops);
        group
    }

    fn groups() -> impl Strategy<Value = Vec<Group>> {
        prop::collection::vec((0_u8..6, 0_u64..3).prop_map(group), 0..8)
    }

    proptest! {
        #[test]
        fn whatever_is_taken_out_is_put_back(totals in groups(), of_lease in groups()) {
            let mut left = totals.clone();
            let places = take_out(&mut left, &of_lease);
            prop_assert_eq!(left.len() + places.len(), totals.len());
            put_back(&mut left, &of_lease, &places).unwrap();
            prop_assert_eq!(left, totals);
        }
    }

    #[test]
    fn what_is_the_same_is_held_once() {
        let totals: Vec<Group> = (0..5).map(|device| group((device, 7))).collect();
        let mut left = totals.clone();
        let mut of_lease = totals.clone();
        of_lease[2].set(Block::ops, 8);
        assert_eq!(take_out(&mut left, &of_lease), [(0, 0), (1, 1), (3, 3), (4, 4)]);
        assert_eq!(left, totals[2..3]);
    }

    #[test]
    fn places_that_are_none_are_told() {
        let of_lease = [group((1, 1))];
        assert!(put_back(&mut Vec::new(), &of_lease, &[(1, 0)]).is_err());
        assert!(put_back(&mut Vec::new(), &of_lease, &[(0, 1)]).is_err());
    }
}
