//! Names of spooled files: `<node>-<boot>-<sequence>-<start>.lp.gz`, unique for ever.
//!
//! Pure: it makes names and reads them; it looks at no folder and at no clock.
//!
//! The sequence is CLOCK_MONOTONIC at the writing, and at least one more than the one before. So an
//! agent started again continues above its predecessor without asking what the collector has taken, a
//! file's age within its boot needs no wall clock, and the order of names is the order of writing. The
//! boot tells one such clock from the next; the start is the wall time of what is inside.

/// A set of files that are published together: an interval, or several that had to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetName {
    /// First eight hexadecimal digits of the boot id.
    pub boot: u32,
    /// Grows with each set of a boot.
    pub sequence: u64,
    /// Wall time at the begin of what is inside, nanoseconds since the Unix epoch.
    pub start_ns: u64,
}

/// One file of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Line protocol: `.lp.gz`, and where one file would be too long `.1.lp.gz`, `.2.lp.gz`, ….
    Lines(u32),
    /// The HdrHistogram interval log.
    Hlog,
}

impl SetName {
    /// The name as the agent's state holds it, and the begin of its files' names.
    pub fn show(self, node: &str) -> String {
        format!("{node}-{:08x}-{:018}-{}", self.boot, self.sequence, self.start_ns)
    }

    /// The name of one of its files.
    pub fn file(self, node: &str, part: Part) -> String {
        let set = self.show(node);
        match part {
            Part::Lines(0) => format!("{set}.lp.gz"),
            Part::Lines(number) => format!("{set}.{number}.lp.gz"),
            Part::Hlog => format!("{set}.hlog"),
        }
    }

    /// Reads the name of a file of `node`; `None` for any name that [`SetName::file`] does not make.
    pub fn parse(node: &str, name: &str) -> Option<(Self, Part)> {
        let rest = name.strip_prefix(node)?.strip_prefix('-')?;
        let (stem, extension) = rest.split_once('.')?;
        let (boot, numbers) = stem.split_once('-')?;
        let (sequence, start) = numbers.split_once('-')?;
        let part = match extension {
            "lp.gz" => Part::Lines(0),
            "hlog" => Part::Hlog,
            numbered => Part::Lines(numbered.strip_suffix(".lp.gz")?.parse().ok()?),
        };
        let boot = u32::from_str_radix(boot, 16).ok()?;
        let set = Self { boot, sequence: sequence.parse().ok()?, start_ns: start.parse().ok()? };
        // Whatever was read leniently above: only our very own names are ours.
        (set.file(node, part) == name).then_some((set, part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> SetName {
        SetName { boot: 0x3fd2_a9b1, sequence: 123_456_789, start_ns: 1_700_000_000 }
    }

    #[test]
    fn names_are_read_back() {
        for (part, name) in [
            (Part::Lines(0), "cn-1-3fd2a9b1-000000000123456789-1700000000.lp.gz"),
            (Part::Lines(12), "cn-1-3fd2a9b1-000000000123456789-1700000000.12.lp.gz"),
            (Part::Hlog, "cn-1-3fd2a9b1-000000000123456789-1700000000.hlog"),
        ] {
            assert_eq!(set().file("cn-1", part), name);
            assert_eq!(SetName::parse("cn-1", name), Some((set(), part)));
        }
    }

    #[test]
    fn only_our_own_names_are_ours() {
        for name in [
            // Another node's, though its name begins alike.
            "cn-12-3fd2a9b1-000000000123456789-1700000000.lp.gz",
            "cn-3fd2a9b1-000000000123456789-1700000000.lp.gz",
            // Of `jobtrace run --out`.
            "cn-1-3fd2a9b1-42.0-1700000000.lp.gz",
            "cn-1-3fd2a9b1-123456789-1700000000.lp.gz",
            "cn-1-3fd2a9b1-000000000123456789-+1700000000.lp.gz",
            "cn-1-3FD2A9B1-000000000123456789-1700000000.lp.gz",
            "cn-1-3fd2a9b-000000000123456789-1700000000.lp.gz",
            "cn-1-3fd2a9b1-000000000123456789-1700000000.0.lp.gz",
            "cn-1-3fd2a9b1-000000000123456789-1700000000.01.lp.gz",
            "cn-1-3fd2a9b1-000000000123456789-1700000000.lp",
            "cn-1-3fd2a9b1-000000000123456789.lp.gz",
            "cn-1-",
            "",
            "notes.lp.gz",
        ] {
            assert_eq!(SetName::parse("cn-1", name), None, "{name}");
        }
    }

    #[test]
    fn the_order_of_names_is_the_order_of_writing() {
        let shown = |sequence| SetName { sequence, ..set() }.show("n");
        // Half an hour, a day and thirty years after the boot.
        let names = [1_800_000_000_000, 86_400_000_000_000, 946_080_000_000_000_000].map(shown);
        assert!(names.is_sorted(), "{names:?}");
    }
}
