//! Numbers as people read them: three significant digits and a unit. Nothing here knows what the
//! numbers mean.

/// Shown in place of a value that is not known; never a zero.
pub const UNKNOWN: &str = "unknown";

const NS_PER_S: f64 = 1e9;
const DURATIONS: [(f64, &str); 6] = [
    (1e3, "µs"),
    (1e6, "ms"),
    (NS_PER_S, "s"),
    (60.0 * NS_PER_S, "min"),
    (3_600.0 * NS_PER_S, "h"),
    (86_400.0 * NS_PER_S, "d"),
];
const BYTES: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const COUNTS: [&str; 6] = ["k", "M", "G", "T", "P", "E"];

/// Nanoseconds: `999 ns`, `1.00 µs`, `59.9 s`, `1.50 min`, `213504 d`.
pub fn duration(ns: u64) -> String {
    // What would be rounded to a full next unit is written in it: 999.6 µs is 1.00 ms, 59.96 s is 1.00 min.
    let least = [0.9995, 0.9995, 0.9995, 59.95 / 60.0, 59.95 / 60.0, 23.95 / 24.0];
    let reached = |((unit, _), least): &(&(f64, &str), f64)| ns as f64 >= unit * least;
    match DURATIONS.iter().zip(least).rev().find(reached).map(|(unit, _)| unit) {
        Some((unit, name)) if ns >= 1000 => format!("{} {name}", digits(ns as f64 / unit)),
        _ => format!("{ns} ns"),
    }
}

/// Nanoseconds as a clock would say it from a minute on: `1 min 23 s`, `2 h 5 min`, `3 d 4 h`.
pub fn long_duration(ns: u64) -> String {
    if ns < 59_950_000_000 {
        return duration(ns);
    }
    let seconds = ns.saturating_add(500_000_000) / 1_000_000_000;
    match seconds {
        ..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// Bytes by powers of 1024: `1023 B`, `4 KiB`, `4.01 KiB`, `1.50 GiB`.
pub fn bytes(bytes: u64) -> String {
    match scaled(bytes as f64, 1024.0, 1023.5) {
        (value, 0) => format!("{value} B"),
        // Sizes are often exact powers of two, and read better so: 4 KiB, 16 GiB.
        (value, power) if value.fract() == 0.0 => format!("{value} {}", BYTES[power - 1]),
        (value, power) => format!("{} {}", digits(value), BYTES[power - 1]),
    }
}

/// Bytes over nanoseconds, per second: `14.8 MiB/s`, `<1 B/s`; unknown over no time.
pub fn byte_rate(amount: u64, span_ns: u64) -> String {
    if span_ns == 0 {
        return UNKNOWN.to_owned();
    }
    let per_second = u128::from(amount) * 1_000_000_000 / u128::from(span_ns);
    if amount > 0 && per_second == 0 {
        return "<1 B/s".to_owned();
    }
    format!("{}/s", bytes(u64::try_from(per_second).unwrap_or(u64::MAX)))
}

/// A number of things: `999`, `1.00k`, `12.3M`.
pub fn count(count: u64) -> String {
    match scaled(count as f64, 1000.0, 999.5) {
        (_, 0) => count.to_string(),
        (value, power) => format!("{}{}", digits(value), COUNTS[power - 1]),
    }
}

/// `1 file`, `2 files`.
pub fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Thousandths of a core as cores: `8`, `1.02`, `63.4`, `<0.01`.
pub fn cores(millicores: u64) -> String {
    match millicores {
        m if m % 1000 == 0 || m >= 999_500 => count(m.saturating_add(500) / 1000),
        m => digits(m as f64 / 1000.0),
    }
}

/// Watts: `71.3 W`, `512 W`, `1.20 kW`, `<0.01 W`.
pub fn watts(watts: f64) -> String {
    metric(watts, "W")
}

/// Joules: `41.2 kJ`.
pub fn joules(joules: f64) -> String {
    metric(joules, "J")
}

fn metric(value: f64, unit: &str) -> String {
    match scaled(value, 999.5, 999.5) {
        (value, 0) => format!("{} {unit}", digits(value)),
        (value, power) => format!("{} {}{unit}", digits(value), COUNTS[power - 1]),
    }
}

/// A share of one: `62 %`, `<1 %`, `>99 %`, `>999 %`; a whole 100 and a true 0 are exact.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p.is_nan() => UNKNOWN.to_owned(),
        p if p > 0.0 && p < 1.0 => "<1 %".to_owned(),
        p if p > 99.0 && p < 100.0 => ">99 %".to_owned(),
        p if p >= 999.5 => ">999 %".to_owned(),
        p => format!("{:.0} %", p.max(0.0)),
    }
}

/// A lower bound of a share of one: `at least 62 %`; what is itself a bound needs no second one.
pub fn at_least(share: f64) -> String {
    match share * 100.0 {
        p if p > 99.0 && p < 100.0 => percent(share),
        // Not rounded up past what it is.
        p => format!("at least {}", percent(p.floor() / 100.0)),
    }
}

/// A small share of one, to a hundredth of a percent: `0.05 %`.
pub fn fine_percent(share: f64) -> String {
    match share * 100.0 {
        p if p > 0.0 && p < 0.01 => "<0.01 %".to_owned(),
        p if p < 9.995 => format!("{p:.2} %"),
        _ => percent(share),
    }
}

/// Divides by `base` until the value is below `limit`; how often, too, at most six times.
fn scaled(mut value: f64, base: f64, limit: f64) -> (f64, usize) {
    let mut power = 0;
    // A whole number is shown as it is up to the base.
    while power < 6 && value >= if power == 0 { base } else { limit } {
        value /= base;
        power += 1;
    }
    (value, power)
}

/// Three significant digits; more before the point where there are more. What is there is never a zero.
fn digits(value: f64) -> String {
    match value {
        v if v > 0.0 && v < 0.01 => "<0.01".to_owned(),
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows every value of a table by `show`.
    fn check<T: Copy + std::fmt::Debug>(show: impl Fn(T) -> String, table: &[(T, &str)]) {
        for (value, shown) in table {
            assert_eq!(show(*value), *shown, "{value:?}");
        }
    }

    #[test]
    fn durations() {
        check(
            duration,
            &[
                (0, "0 ns"),
                (999, "999 ns"),
                (1_000, "1.00 µs"),
                (1_023, "1.02 µs"),
                (9_994, "9.99 µs"),
                (9_996, "10.0 µs"),
                (999_400, "999 µs"),
                (999_600, "1.00 ms"),
                (8_100_000, "8.10 ms"),
                (999_999_999, "1.00 s"),
                (59_900_000_000, "59.9 s"),
                (59_949_000_000, "59.9 s"),
                (59_999_600_000, "1.00 min"),
                (90_000_000_000, "1.50 min"),
                (3_599_900_000_000, "1.00 h"),
                (3_600_000_000_000, "1.00 h"),
                (86_400_000_000_000, "1.00 d"),
                (u64::MAX, "213504 d"),
            ],
        );
    }

    #[test]
    fn long_durations() {
        check(
            long_duration,
            &[
                (0, "0 ns"),
                (12_345_678_901, "12.3 s"),
                (60_000_000_000, "1 min 0 s"),
                (59_949_000_000, "59.9 s"),
                (59_999_600_000, "1 min 0 s"),
                (83_900_000_000, "1 min 24 s"),
                (3_599_900_000_000, "1 h 0 min"),
                (7_500_000_000_000, "2 h 5 min"),
                (u64::MAX, "213503 d 23 h"),
            ],
        );
    }

    #[test]
    fn bytes_and_counts() {
        check(
            bytes,
            &[
                (0, "0 B"),
                (999, "999 B"),
                (1_000, "1000 B"),
                (1_023, "1023 B"),
                (1_024, "1 KiB"),
                (1_025, "1.00 KiB"),
                (1_023 * 1_024, "1023 KiB"),
                (1_048_575, "1.00 MiB"),
                (u64::MAX, "16 EiB"),
            ],
        );
        check(
            count,
            &[
                (0, "0"),
                (999, "999"),
                (1_000, "1.00k"),
                (1_023, "1.02k"),
                (999_499, "999k"),
                (999_500, "1.00M"),
                (u64::MAX, "18.4E"),
            ],
        );
    }

    #[test]
    fn rates_cores_and_shares() {
        check(
            |(amount, span)| byte_rate(amount, span),
            &[
                ((0, 1), "0 B/s"),
                ((1, 0), "unknown"),
                ((1_024, 1_000_000_000), "1 KiB/s"),
                ((1, 1_000_000_001), "<1 B/s"),
                ((u64::MAX, 1), "16 EiB/s"),
            ],
        );
        check(
            cores,
            &[
                (0, "0"),
                (1, "<0.01"),
                (10, "0.01"),
                (8_000, "8"),
                (1_020, "1.02"),
                (63_400, "63.4"),
                (u64::MAX, "18.4P"),
            ],
        );
        check(
            percent,
            &[
                (0.0, "0 %"),
                (0.001, "<1 %"),
                (0.625, "62 %"),
                (0.995, ">99 %"),
                (1.0, "100 %"),
                (f64::INFINITY, ">999 %"),
                (f64::NAN, "unknown"),
            ],
        );
        check(
            at_least,
            &[
                (0.5, "at least 50 %"),
                (0.6279, "at least 62 %"),
                (0.99, "at least 99 %"),
                (0.998, ">99 %"),
                (1.0, "at least 100 %"),
            ],
        );
        check(
            watts,
            &[
                (0.0, "0.00 W"),
                (0.004, "<0.01 W"),
                (71.25, "71.2 W"),
                (512.0, "512 W"),
                (999.6, "1.00 kW"),
            ],
        );
        check(joules, &[(41_200.0, "41.2 kJ"), (3.6e6, "3.60 MJ")]);
        check(
            fine_percent,
            &[(0.0, "0.00 %"), (1e-9, "<0.01 %"), (0.00052, "0.05 %"), (0.5, "50 %")],
        );
    }
}
