//! Rows of numbers in as few bytes as they need (LEB128): the agent holds one set for each job.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

/// Room that is made at once.
const MORE_BYTES: usize = 512;

/// Rows of `N` numbers, each known or not.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
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
        // A few rows at a time: to double the room would leave half of it empty.
        if self.bytes.capacity() - self.bytes.len() < 10 * N {
            self.bytes.reserve_exact(MORE_BYTES.max(10 * N));
        }
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

/// The form in which an agent keeps them for the next one: short to write at each tick.
impl<const N: usize> From<Packed<N>> for String {
    fn from(packed: Packed<N>) -> Self {
        STANDARD.encode(&packed.bytes)
    }
}

impl<const N: usize> TryFrom<String> for Packed<N> {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let bytes = STANDARD.decode(text).map_err(|_| "packed rows are damaged")?;
        let numbers = bytes.iter().filter(|byte| **byte & 0x80 == 0).count();
        let is_whole =
            numbers.is_multiple_of(N) && bytes.last().is_none_or(|byte| byte & 0x80 == 0);
        // Ten bytes hold 70 bits.
        let is_short = bytes.split(|byte| byte & 0x80 == 0).all(|number| number.len() < 10);
        let rows = Self { bytes, len: numbers / N };
        Some(rows).filter(|_| is_whole && is_short).ok_or("packed rows are damaged")
    }
}
