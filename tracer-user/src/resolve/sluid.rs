//! Slurm's SLUIDs (26.05 and later): a job's name that is unique over clusters and time. Pure.

use serde::Serialize;

/// Crockford's base 32: no I, L, O, U.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Characters after the `s`.
const LENGTH: usize = 13;

/// What a SLUID is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sluid {
    /// The number that it spells.
    pub number: u64,
    /// The cluster's own number: bits 52 to 63.
    pub cluster: u16,
    /// When the job was submitted, milliseconds since the Unix epoch: bits 10 to 51.
    pub submitted_ms: u64,
    /// Jobs of that millisecond: bits 0 to 9.
    pub sequence: u16,
}

impl Sluid {
    /// Reads `s` and 13 digits; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('s').filter(|digits| digits.len() == LENGTH)?;
        let mut number = 0u64;
        for digit in digits.bytes() {
            let value = DIGITS.iter().position(|known| *known == digit)?;
            number = number.checked_mul(32)?.checked_add(value as u64)?;
        }
        Some(Self {
            number,
            cluster: (number >> 52) as u16,
            submitted_ms: (number >> 10) & ((1 << 42) - 1),
            sequence: (number & 0x3ff) as u16,
        })
    }
}

/// The job's number in the title of a step daemon: `slurmstepd: [3385.0]`, `[3385.extern]`. `title` is a
/// /proc/PID/cmdline.
pub fn job_in_title(title: &[u8]) -> Option<String> {
    let rest = title.strip_prefix(b"slurmstepd: [")?;
    let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    let is_number = (1..=10).contains(&end) && matches!(rest[end], b'.' | b'+' | b']');
    is_number.then(|| String::from_utf8_lossy(&rest[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_one() {
        let sluid = Sluid::parse("s5K1KKYAYG5D00").unwrap();
        let expected = Sluid {
            number: 6_450_971_002_645_165_056,
            cluster: 1432,
            // 2026-03-17T16:44:29.741Z
            submitted_ms: 1_773_765_869_741,
            sequence: 0,
        };
        assert_eq!(sluid, expected);
    }

    #[test]
    fn the_smallest_the_largest_and_none() {
        assert_eq!(Sluid::parse("s0000000000000").unwrap().number, 0);
        let largest = Sluid::parse("sFZZZZZZZZZZZZ").unwrap();
        assert_eq!((largest.number, largest.cluster, largest.sequence), (u64::MAX, 4095, 1023));
        for text in [
            "",
            "s",
            "5K1KKYAYG5D00",
            "s5K1KKYAYG5D0",
            "s5K1KKYAYG5D000",
            "sG000000000000",
            "sILOU00000000U",
            "s5k1kkyayg5d00",
            "s5K1KKYAYG5D0é",
        ] {
            assert_eq!(Sluid::parse(text), None, "{text}");
        }
    }

    #[test]
    fn titles() {
        for (title, job) in [
            (&b"slurmstepd: [3385.0]\0"[..], Some("3385")),
            (b"slurmstepd: [3385.extern]", Some("3385")),
            (b"slurmstepd: [3385.batch]\0\0\0", Some("3385")),
            (b"slurmstepd: [3385+1.0]", Some("3385")),
            (b"slurmstepd: [.0]", None),
            (b"slurmstepd: [12345678901.0]", None),
            (b"slurmstepd: [33", None),
            (b"slurmstepd infinity\0", None),
            (b"/usr/sbin/slurmstepd\0", None),
            (b"", None),
        ] {
            assert_eq!(job_in_title(title).as_deref(), job, "{}", title.escape_ascii());
        }
    }
}
