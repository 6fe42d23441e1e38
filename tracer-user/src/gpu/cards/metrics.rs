//! What AMD's `gpu_metrics` tells that no other file does: energy, from MI300 on. Binary, in versions. Pure.

/// Where a version of the table has its energy, bytes from its beginning.
const PLACES: [((u8, u8), usize); 5] =
    [((1, 4), 24), ((1, 5), 88), ((1, 6), 16), ((1, 7), 24), ((1, 8), 24)];

/// Energy since the driver was loaded; `None` in a version that has none, or has it in other units.
pub fn energy_millijoules(table: &[u8]) -> Option<u64> {
    let (size, version) = (table.first_chunk::<2>()?, (*table.get(2)?, *table.get(3)?));
    let (_, at) = PLACES.iter().find(|(known, _)| *known == version)?;
    let table = table.get(..u16::from_le_bytes(*size).into())?;
    let counter = u64::from_le_bytes(*table.get(*at..)?.first_chunk()?);
    // In 1/65536 J; all ones where the firmware does not tell.
    (counter != u64::MAX).then(|| (u128::from(counter) * 1000 / 65_536) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(version: (u8, u8), at: usize, counter: u64) -> Vec<u8> {
        let mut table = vec![0xee; 128];
        table[..4].copy_from_slice(&[128, 0, version.0, version.1]);
        table[at..at + 8].copy_from_slice(&counter.to_le_bytes());
        table
    }

    #[test]
    fn energy_of_each_version() {
        for (version, at) in PLACES {
            let of = |counter| energy_millijoules(&table(version, at, counter));
            assert_eq!(of(65_536 * 7), Some(7_000), "{version:?}");
            assert_eq!(of(u64::MAX), None, "{version:?}");
            assert_eq!(energy_millijoules(&table(version, at, 1)[..at + 4]), None, "cut off");
        }
        assert_eq!(energy_millijoules(&table((1, 3), 24, 1)), None, "its units are the card's own");
        assert_eq!(energy_millijoules(&table((2, 4), 24, 1)), None);
        assert_eq!(energy_millijoules(&[]), None);
    }
}
