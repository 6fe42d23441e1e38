//! Whether a key came before in a line, at no more than a few bits for each.

/// Bits in which keys leave marks: 2 KiB. Of a hundred keys hardly one in a hundred finds another's, which costs a look
/// at all that came before.
const BITS: usize = 16_384;

/// The keys of one line so far.
pub struct Seen([u64; BITS / 64]);

impl Default for Seen {
    fn default() -> Self {
        Self([0; BITS / 64])
    }
}

impl Seen {
    /// Adds `key`, whose [`mark`] is `mark`; gives whether it is the first of its kind. `is_known` looks closely, where the
    /// marks do not tell.
    pub fn add(&mut self, key: &str, mark: u16, is_known: impl FnOnce(&str) -> bool) -> bool {
        let mark = usize::from(mark);
        let (word, bit) = (&mut self.0[mark / 64], 1 << (mark % 64));
        let may_be_known = *word & bit != 0;
        *word |= bit;
        !may_be_known || !is_known(key)
    }
}

/// FNV-1a, by words: keys that were made to meet cost a look at each other, and nothing else.
pub fn mark(key: &str) -> u16 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let mut hash = BASIS;
    for part in key.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(PRIME);
        hash ^= hash >> 32;
    }
    ((hash ^ hash >> 16) % BITS as u64) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_each_key_is_told_from_those_that_come_again() {
        let (mut seen, mut known, mut looks) = (Seen::default(), Vec::<String>::new(), 0);
        for number in 0..300 {
            let key = format!("sleep_{}_ns_p{}", number % 100, number % 100 * 7);
            let is_first = seen.add(&key, mark(&key), |key| {
                looks += 1;
                known.iter().any(|known| known == key)
            });
            assert_eq!(is_first, number < 100, "{key}");
            known.push(key);
        }
        assert!((200..203).contains(&looks), "{looks} looks for 200 that came again");
    }
}
