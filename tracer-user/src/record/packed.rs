//! Rows of numbers in as few bytes as they need (LEB128): the agent holds one set for each job.

/// Rows of `N` numbers, each known or not.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Packed<const N: usize> {
    bytes: Vec<u8>,
    len: usize,
}

impl<const N: usize> Packed<N> {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory that the rows take.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Adds a row.
    pub fn push(&mut self, row: &[Option<u64>; N]) {
        for value in row {
            // Unknown is not zero: it is the zero of these bytes, and each number stands one higher.
            let mut left = value.map_or(0, |value| u128::from(value) + 1);
            while left >= 0x80 {
                self.bytes.push(left as u8 | 0x80);
                left >>= 7;
            }
            self.bytes.push(left as u8);
        }
        self.len += 1;
    }

    /// The rows from the first on.
    pub fn iter(&self) -> impl Iterator<Item = [Option<u64>; N]> + '_ {
        let mut bytes = self.bytes.iter();
        let mut next = move || {
            let (mut value, mut shift) = (0u128, 0);
            for byte in bytes.by_ref() {
                value |= u128::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            value.checked_sub(1).map(|value| value as u64)
        };
        (0..self.len).map(move |_| std::array::from_fn(|_| next()))
    }
}

impl<const N: usize> FromIterator<[Option<u64>; N]> for Packed<N> {
    fn from_iter<I: IntoIterator<Item = [Option<u64>; N]>>(rows: I) -> Self {
        let mut packed = Self::default();
        rows.into_iter().for_each(|row| packed.push(&row));
        packed.bytes.shrink_to_fit();
        packed
    }
}
