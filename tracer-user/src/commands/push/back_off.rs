//! How long to wait before the next attempt.
//!
//! Pure: the number of attempts, the server's wish, the moment and the dice come in.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::{Duration, SystemTime},
};

/// Before the second attempt; each time after that twice as long.
const FIRST: Duration = Duration::from_secs(1);
/// Longest wait that the number of attempts leads to.
const LONGEST: Duration = Duration::from_secs(60);
/// Longest wait that a server may ask for.
pub const LONGEST_WISH: Duration = Duration::from_secs(3600);

/// The wait after `failures` failed attempts in a row, the first of which counts as 1. `dice` from 0 to
/// 1 spreads the nodes of a cluster, whose database came back at one moment: the wait is between half
/// of its bound and all of it. A server's wish is never undercut, and spread by a tenth above it.
pub fn wait(failures: u32, wish: Option<Duration>, dice: f64) -> Duration {
    let dice = dice.clamp(0.0, 1.0);
    let doublings = failures.saturating_sub(1).min(16);
    let bound = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    let own = bound.mul_f64(0.5 + dice / 2.0);
    let wished =
        wish.map_or(Duration::ZERO, |wish| wish.min(LONGEST_WISH).mul_f64(1.0 + dice / 10.0));
    own.max(wished)
}

/// A number from 0 to 1 that differs from node to node and from call to call: the standard library
/// seeds its hash tables from the kernel's random numbers.
pub fn dice() -> f64 {
    RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64
}

/// The time that a header `Retry-After` asks for at `now`: seconds, or a date in any of RFC 9110's
/// three forms. `None` for anything else; a date that has passed is no wait.
pub fn parse_retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number holds are a long time as well.
        return Some(Duration::from_secs(text.parse().unwrap_or(LONGEST_WISH.as_secs())));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute_and_are_spread() {
        for (failures, low, high) in [
            (1, 500, 1000),
            (2, 1000, 2000),
            (3, 2000, 4000),
            (6, 16_000, 32_000),
            (7, 30_000, 60_000),
        ] {
            assert_eq!(wait(failures, None, 0.0), Duration::from_millis(low), "{failures}");
            assert_eq!(wait(failures, None, 1.0), Duration::from_millis(high), "{failures}");
        }
        assert_eq!(wait(u32::MAX, None, 1.0), LONGEST);
        assert!(wait(0, None, 0.0) >= Duration::from_millis(500));
    }

    #[test]
    fn what_a_server_wishes_is_never_undercut() {
        let seconds = Duration::from_secs;
        assert_eq!(wait(1, Some(seconds(30)), 0.0), seconds(30));
        assert_eq!(wait(1, Some(seconds(30)), 1.0), seconds(33));
        assert_eq!(wait(7, Some(seconds(1)), 1.0), seconds(60), "the own wait is longer");
        assert_eq!(wait(1, Some(Duration::MAX), 0.0), LONGEST_WISH);
    }

    #[test]
    fn the_dice_fall_everywhere() {
        let thrown: Vec<f64> = (0..1000).map(|_| dice()).collect();
        assert!(thrown.iter().all(|dice| (0.0..=1.0).contains(dice)));
        for tenth in 0..10 {
            let within = thrown.iter().filter(|dice| (*dice * 10.0).min(9.9) as u32 == tenth);
            assert!((40..200).contains(&within.count()), "{tenth}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        for (text, seconds) in [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 5 ", Some(5)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(7)),
            ("Sun, 06 Nov 1994 08:49:30 GMT", Some(0)),
            ("Sat, 05 Nov 1994 08:49:37 GMT", Some(0)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(7)),
            ("Sun Nov  6 08:49:37 1994", Some(7)),
            ("99999999999999999999999", Some(3600)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("Sun, 06 Nov 1994 08:49:37", None),
            ("Sun, 06 Foo 1994 08:49:37 GMT", None),
            ("Sun, 99 Nov 1994 08:49:37 GMT", None),
        ] {
            let expected = seconds.map(Duration::from_secs);
            assert_eq!(parse_retry_after(text, now), expected, "{text:?}");
        }
    }
}
