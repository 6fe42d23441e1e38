//! Times as schedulers' commands print them: by the caller's own time zone.

const SECOND_NS: u64 = 1_000_000_000;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Seconds since the Unix epoch, or `2026-11-22T20:00:00` of local time, in nanoseconds since the epoch.
pub fn moment(text: &str) -> Option<u64> {
    if let Ok(seconds) = text.parse::<u64>() {
        return seconds.checked_mul(SECOND_NS).filter(|ns| *ns > 0);
    }
    let (day, time) = text.split_once('T')?;
    let mut parts = day.splitn(3, '-');
    let mut part = || parts.next()?.parse().ok();
    let (year, month, day) = (part()?, part()?, part()?);
    local(year, month, day, time)
}

/// `Sun Nov 22 20:00:00 2026` of local time; without its year that which is nearest to `near_ns`.
pub fn dated(text: &str, near_ns: u64) -> Option<u64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, month, day, time, rest @ ..] = words.as_slice() else { return None };
    let month = 1 + MONTHS.iter().position(|name| name == month)? as i32;
    let of = |year: i32| local(year, month, day.parse().ok()?, time);
    match rest {
        [year] => of(year.parse().ok()?),
        [] => {
            let near = (near_ns / SECOND_NS / 31_556_952) as i32 + 1970;
            let all = [near - 1, near, near + 1].into_iter().filter_map(of);
            all.min_by_key(|moment| moment.abs_diff(near_ns))
        }
        _ => None,
    }
}

/// Year, month and day from 1 on, and `20:00:00`, in nanoseconds since the epoch.
fn local(year: i32, month: i32, day: i32, time: &str) -> Option<u64> {
    let mut parts = time.splitn(3, ':');
    let mut part = || parts.next()?.parse::<i32>().ok();
    let (hour, minute, second) = (part()?, part()?, part()?);
    let is_sound = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !is_sound {
        return None;
    }
    // SAFETY: zeros are a valid value of this struct of numbers.
    let mut broken_down: libc::tm = unsafe { std::mem::zeroed() };
    broken_down.tm_year = year - 1900;
    broken_down.tm_mon = month - 1;
    broken_down.tm_mday = day;
    broken_down.tm_hour = hour;
    broken_down.tm_min = minute;
    broken_down.tm_sec = second;
    // Whether it is summer time then is for the time zone to know.
    broken_down.tm_isdst = -1;
    // SAFETY: the struct is ours, and only numbers are in it.
    let seconds = unsafe { libc::mktime(&mut broken_down) };
    u64::try_from(seconds).ok()?.checked_mul(SECOND_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_all_their_forms_are_the_same_moment() {
        let expected = local(2026, 11, 22, "20:00:00").unwrap();
        assert_eq!(moment("2026-11-22T20:00:00"), Some(expected));
        assert_eq!(moment(&(expected / SECOND_NS).to_string()), Some(expected));
        assert_eq!(dated("Sun Nov 22 20:00:00 2026", 0), Some(expected));
        assert_eq!(dated("Sun Nov 22 20:00:00", expected + 5), Some(expected));
        // Around New Year the nearest is in the other year.
        let new_year = local(2027, 1, 1, "00:30:00").unwrap();
        assert_eq!(dated("Thu Dec 31 23:30:00", new_year), local(2026, 12, 31, "23:30:00"));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in ["Unknown", "None", "", "0", "2026-13-01T00:00:00", "2026-11-22T25:00:00", "1T"]
        {
            assert_eq!(moment(text), None, "{text}");
        }
        for text in ["Sun Foo 22 20:00:00", "Sun Nov 22", "Sun Nov 22 20:00:00 2026 x"] {
            assert_eq!(dated(text, 0), None, "{text}");
        }
    }
}
