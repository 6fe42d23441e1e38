//! Times and sizes as people write them: `10s`, `5m`, `1 GiB`. Owns parsing and exact printing, and no
//! limit: what is allowed is the key's own affair.

use std::{fmt, str::FromStr, time::Duration};

use bytesize::ByteSize;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::clock::wall_ns;

/// A time span, `10s`, `1h 30m`; a plain number is seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

/// A number of bytes, `500MB`, `1 GiB`; a plain number is bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl Time {
    /// A span of whole seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// In nanoseconds.
    pub fn ns(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The moment so long before now, nanoseconds since the Unix epoch.
    pub fn ago_ns(self) -> u64 {
        wall_ns().saturating_sub(self.ns())
    }

    /// A span of whole milliseconds.
    pub const fn millis(milliseconds: u64) -> Self {
        Self(Duration::from_millis(milliseconds))
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        // `humantime` wants a unit; seconds are what everybody means without one.
        let is_bare = text.ends_with(|c: char| c.is_ascii_digit() || c == '.');
        let with_unit = if is_bare { format!("{text}s") } else { text.to_owned() };
        humantime::parse_duration(&with_unit).map(Self).map_err(|error| {
            format!("{text:?} is not a time: {error}, write for example 10s, 5m or 1h 30m")
        })
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY_S: u64 = 86_400;
        let seconds = self.0.as_secs();
        // `humantime` prints 90 days by months and years of their mean lengths.
        let are_days = seconds >= DAY_S && self.0 == Duration::from_secs(seconds / DAY_S * DAY_S);
        match (are_days, seconds / DAY_S) {
            (true, 1) => f.write_str("1 day"),
            (true, days) => write!(f, "{days} days"),
            (false, _) => humantime::format_duration(self.0).fmt(f),
        }
    }
}

/// How far clocks are ahead of UTC: `+01:00`, `-05:30`, `+9`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UtcOffset {
    minutes: i64,
}

impl UtcOffset {
    /// What these clocks show, of nanoseconds since the Unix epoch.
    pub fn shown_ns(self, utc_ns: u64) -> u64 {
        utc_ns.saturating_add_signed(self.minutes * 60_000_000_000)
    }
}

impl FromStr for UtcOffset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = || {
            let (sign, rest) = match text.strip_prefix('-') {
                Some(rest) => (-1, rest),
                None => (1, text.strip_prefix('+')?),
            };
            let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
            let number = |digits: &str, most: i64| {
                let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
                digits.parse().ok().filter(|number: &i64| is_plain && *number <= most)
            };
            // Clocks are 12 hours behind UTC at most, and 14 ahead.
            Some(Self { minutes: sign * (number(hours, 14)? * 60 + number(minutes, 59)?) })
        };
        parsed().ok_or_else(|| {
            format!("{text:?} is no offset from UTC, write for example +01:00 or -05:30")
        })
    }
}

impl fmt::Display for UtcOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, minutes) = (if self.minutes < 0 { '-' } else { '+' }, self.minutes.abs());
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        ByteSize::from_str(text.trim())
            .map(|size| Self(size.0))
            .map_err(|_| format!("{text:?} is not a size, write for example 500MB or 1 GiB"))
    }
}

impl fmt::Display for Size {
    /// The largest unit that needs no fraction, so that the text parses back to the same size.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match units.into_iter().find(|(unit, _)| self.0 != 0 && self.0.is_multiple_of(*unit)) {
            Some((unit, name)) => write!(f, "{} {name}", self.0 / unit),
            None => write!(f, "{} B", self.0),
        }
    }
}

/// Reads `T` from a string or a whole number.
struct Written<T> {
    expected: &'static str,
    number: fn(u64) -> T,
}

impl<T: FromStr<Err = String>> de::Visitor<'_> for Written<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        Ok((self.number)(number))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        u64::try_from(number)
            .map(self.number)
            .map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Written { expected: "a time such as \"10s\"", number: Self::seconds })
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Written { expected: "a size such as \"1 GiB\"", number: Self })
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, ms) in
            [("10s", 10_000), ("5m", 300_000), ("7", 7_000), ("0.5", 500), ("1h 30m", 5_400_000)]
        {
            assert_eq!(text.parse(), Ok(Time(Duration::from_millis(ms))), "{text}");
        }
        for text in ["", "s", "-1s", "ten", "1e3", "5 lightyears", "nan"] {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in
            [("1 GiB", 1 << 30), ("500MB", 500_000_000), ("4096", 4096), ("1.5KiB", 1536)]
        {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "GiB", "-1", "1 GiX", "much"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn offsets() {
        const HOUR_NS: u64 = 3_600_000_000_000;
        for (text, shown, ns) in [
            ("+01:00", "+01:00", 101 * HOUR_NS),
            ("-05:30", "-05:30", 100 * HOUR_NS - 11 * HOUR_NS / 2),
            ("+9", "+09:00", 109 * HOUR_NS),
            ("-0:00", "+00:00", 100 * HOUR_NS),
        ] {
            let offset: UtcOffset = text.parse().unwrap();
            assert_eq!((offset.to_string(), offset.shown_ns(100 * HOUR_NS)), (shown.into(), ns));
        }
        for text in ["", "1", "01:00", "+", "+15:00", "+1:60", "+-1", "CET", "+1:0:0"] {
            assert!(text.parse::<UtcOffset>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_printed_parses_to_the_same() {
        for bytes in [0, 1, 1000, 1024, 1 << 30, 3 << 29, 500_000_000, (1 << 40) + 1, u64::MAX] {
            assert_eq!(Size(bytes).to_string().parse(), Ok(Size(bytes)));
        }
        for seconds in [0, 1, 90, 3600, 86_400, 30 * 86_400, 365 * 86_400 + 1] {
            assert_eq!(Time::seconds(seconds).to_string().parse(), Ok(Time::seconds(seconds)));
        }
        assert_eq!(Time::seconds(90 * 86_400).to_string(), "90 days");
        assert_eq!(Time::seconds(90_000).to_string(), "1day 1h");
    }
}
