//! Lists of which most have one element or two.

/// Up to so many no room is kept for more.
const FEW: usize = 4;

/// Appends `value`; while there are few, without room for elements to come: a vector begins with room for four.
pub fn push_few<T>(list: &mut Vec<T>, value: T) {
    if list.len() < FEW {
        list.reserve_exact(1);
    }
    list.push(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_take_no_more_room_than_they_need() {
        let mut list = Vec::new();
        for count in 1..=FEW {
            push_few(&mut list, 0_u64);
            assert_eq!(list.capacity(), count);
        }
        (0..100).for_each(|value| push_few(&mut list, value));
        assert_eq!(list.len(), 104);
        assert!(list.capacity() >= 128, "it doubles from there on");
    }
}
