//! The formats of cgroup files, v1 and v2. Pure; what is garbage is unknown (`None`), never zero.

/// v1 has no word for "no limit": it shows the largest number of whole pages. No node has an exbibyte.
const NO_LIMIT_FROM: u64 = 1 << 60;

/// A file that holds one number: `memory.current`, `pids.current`.
pub fn parse_number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// A limit in bytes: `memory.max` (`max` is none), `memory.limit_in_bytes` (a huge number is none).
pub fn parse_limit(text: &str) -> Option<u64> {
    parse_number(text).and_then(limited)
}

/// The key in v1's `memory.stat` of the smallest limit, of the cgroup and all ancestors: also of those that a container's
/// mount does not show.
pub const HIERARCHICAL_LIMIT: &str = "hierarchical_memory_limit";

/// The limit that v1's `memory.stat` names.
pub fn parse_hierarchical_limit(stat: &str) -> Option<u64> {
    parse_stat(stat, HIERARCHICAL_LIMIT).and_then(limited)
}

/// A number of bytes as a limit; a huge one is none.
pub fn limited(bytes: u64) -> Option<u64> {
    Some(bytes).filter(|bytes| *bytes < NO_LIMIT_FROM)
}

/// The value of `key` in a file of `key value` lines: `memory.stat`, `cpu.stat`.
pub fn parse_stat(text: &str, key: &str) -> Option<u64> {
    let value = |line: &str| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(value)
}

/// The same of several keys, by one look at each line: of `memory.stat`, the longest.
pub fn parse_stats<const N: usize>(text: &str, keys: [&str; N]) -> [Option<u64>; N] {
    let mut values = [None; N];
    for (key, value) in text.lines().filter_map(|line| line.split_once(' ')) {
        if let Some(at) = keys.iter().position(|wanted| *wanted == key)
            && values[at].is_none()
        {
            values[at] = value.trim().parse().ok();
        }
    }
    values
}

/// Bytes read and written, all devices, of v2's `io.stat` (`8:0 rbytes=1 wbytes=2 …`) or v1's
/// `blkio.throttle.io_service_bytes` (`8:0 Read 1`).
pub fn parse_io_bytes(text: &str) -> (u64, u64) {
    let sum = |of_v2: &str, of_v1: &str| {
        let value = |line: &str| -> Option<u64> {
            let mut words = line.split_whitespace().skip(1).peekable();
            if words.peek() == Some(&of_v1) {
                return words.nth(1)?.parse().ok();
            }
            words.find_map(|word| word.strip_prefix(of_v2))?.parse().ok()
        };
        text.lines().filter_map(value).fold(0, u64::saturating_add)
    };
    (sum("rbytes=", "Read"), sum("wbytes=", "Write"))
}

/// Stall time in nanoseconds from the line `kind` (`some`, `full`) of a pressure file:
/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=15121062`, in microseconds.
pub fn parse_stall_ns(text: &str, kind: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split(' ').next() == Some(kind))?;
    let total = line.split_whitespace().find_map(|word| word.strip_prefix("total="))?;
    total.parse::<u64>().ok()?.checked_mul(1000)
}

/// Thousandths of a core of v2's `cpu.max`, `150000 100000`; none for `max 100000`.
pub fn parse_cpu_max(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    millicores(words.next()?.parse().ok()?, words.next()?.parse().ok()?)
}

/// Thousandths of a core of v1's `cpu.cfs_quota_us` (-1: none) and `cpu.cfs_period_us`.
pub fn parse_cfs(quota: &str, period: &str) -> Option<u64> {
    millicores(parse_number(quota)?, parse_number(period)?)
}

fn millicores(quota_us: u64, period_us: u64) -> Option<u64> {
    quota_us.checked_mul(1000)?.checked_div(period_us).filter(|millicores| *millicores > 0)
}

/// How many CPUs a list such as `0-3,8` names; an empty or twisted one is unknown.
pub fn parse_cpu_count(text: &str) -> Option<u64> {
    let part = |part: &str| -> Option<u64> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    text.trim().split(',').map(part).try_fold(0u64, |sum, count| sum.checked_add(count?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_limits() {
        let rows = [
            ("0\n", Some(0), Some(0)),
            ("223346688\n", Some(223_346_688), Some(223_346_688)),
            ("max\n", None, None),
            ("9223372036854771712\n", Some(9_223_372_036_854_771_712), None),
            ("9223372036854710272\n", Some(9_223_372_036_854_710_272), None), // 64 KiB pages
            ("", None, None),
            ("-1\n", None, None),
            ("99999999999999999999\n", None, None),
            ("1 2\n", None, None),
        ];
        for (text, number, limit) in rows {
            assert_eq!((parse_number(text), parse_limit(text)), (number, limit), "{text:?}");
        }
    }

    #[test]
    fn stat_files() {
        let v2 = "anon 1675264\nfile 219205632\nkernel 4096\nshmem 7\nfile_mapped 69632\n";
        assert_eq!(parse_stat(v2, "anon"), Some(1_675_264));
        assert_eq!(parse_stat(v2, "file"), Some(219_205_632));
        assert_eq!(parse_stat(v2, "swap"), None);
        let v1 = "cache 5\nrss 6\nshmem 0\nswap 0\ntotal_cache 219205632\ntotal_rss 1822720\n";
        assert_eq!(parse_stat(v1, "total_rss"), Some(1_822_720));
        assert_eq!(parse_stat(v1, "total_rss_huge"), None);
        assert_eq!(
            parse_hierarchical_limit("cache 5\nhierarchical_memory_limit 4096\n"),
            Some(4096)
        );
        let none = "hierarchical_memory_limit 9223372036854771712\n";
        assert_eq!(parse_hierarchical_limit(none), None);
        assert_eq!(parse_stat("nr_throttled 3\nthrottled_time 42\n", "throttled_time"), Some(42));
        for hostile in ["", "anon", "anon ", "anon x", "anon -1", "anonymous 5", " anon 5", "\0"] {
            assert_eq!(parse_stat(hostile, "anon"), None, "{hostile:?}");
            assert_eq!(parse_stats(hostile, ["anon"]), [None], "{hostile:?}");
        }
        let keys = ["total_rss", "swap", "rss", "absent"];
        assert_eq!(parse_stats(v1, keys), keys.map(|key| parse_stat(v1, key)));
        assert_eq!(parse_stats("a 1\na 2\nb x\nb 3", ["a", "b"]), [Some(1), Some(3)]);
    }

    #[test]
    fn pressure_files() {
        let text = "\
some avg10=0.16 avg60=0.32 avg300=0.43 total=15121062
full avg10=0.00 avg60=0.00 avg300=0.00 total=0
";
        assert_eq!(parse_stall_ns(text, "some"), Some(15_121_062_000));
        assert_eq!(parse_stall_ns(text, "full"), Some(0));
        let before_5_13 = "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(parse_stall_ns(before_5_13, "full"), None);
        for hostile in
            ["", "some", "some total=", "some total=-1", "some total=18446744073709551615"]
        {
            assert_eq!(parse_stall_ns(hostile, "some"), None, "{hostile:?}");
        }
    }

    #[test]
    fn quotas() {
        for (text, millicores) in [
            ("150000 100000\n", Some(1500)),
            ("max 100000\n", None),
            ("1000 0\n", None),
            ("1000\n", None),
            ("1 1000000\n", None),
            ("18446744073709551615 1\n", None),
            ("", None),
        ] {
            assert_eq!(parse_cpu_max(text), millicores, "{text:?}");
        }
        assert_eq!(parse_cfs("200000\n", "100000\n"), Some(2000));
        assert_eq!(parse_cfs("-1\n", "100000\n"), None);
        assert_eq!(parse_cfs("200000\n", "0\n"), None);
    }

    #[test]
    fn cpu_lists() {
        for (text, count) in [
            ("0-3,8\n", Some(5)),
            ("0\n", Some(1)),
            ("0-1023", Some(1024)),
            ("\n", None),
            ("3-1", None),
            ("a-b", None),
            ("0-18446744073709551615", None),
            ("0,,1", None),
        ] {
            assert_eq!(parse_cpu_count(text), count, "{text:?}");
        }
    }
}
