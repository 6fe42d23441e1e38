//! Limits of rules for reads and writes that are waited for.

use jobtrace::model::tables::Io;

use super::{FIFTH, Limit, TENTH, limit};
use crate::{
    fixtures::limits::{IO_NS, of_ops, op, reads},
    rules::jobs::MIB,
};

pub(super) fn in_no_order() -> Vec<Limit> {
    let rule = "random_reads";
    let job = |[follow, beyond, back]: [u64; 3], took_ns, waited_ns| {
        let order = [(Io::consecutive, follow), (Io::sequential, beyond), (Io::random, back)];
        of_ops(vec![reads(took_ns, &[&order[..], &[(Io::waited_ns, waited_ns)]].concat())])
    };
    let ordered = |order| job(order, IO_NS, IO_NS);
    vec![
        limit(
            rule,
            "20 % of the time in I/O",
            |ns| job([0, 0, 1_000], FIFTH, ns),
            FIFTH,
            FIFTH - 1,
        ),
        limit(rule, "less than 50 %", |follow| ordered([follow, 0, 1_000 - follow]), 499, 500),
        limit(rule, "25 % or more before", |back| ordered([0, 1_000 - back, back]), 250, 249),
        limit(rule, "1.00k", |number| ordered([0, 0, number]), 1_000, 999),
        limit(
            rule,
            "50 % of their time",
            |ns| job([0, 0, 1_000], IO_NS, ns),
            IO_NS / 2,
            IO_NS / 2 - 1,
        ),
    ]
}

pub(super) fn cache() -> Vec<Limit> {
    let bytes = 300 * MIB;
    let job = |fetched, took_ns, waited_ns| {
        let moved = [(Io::bytes, bytes), (Io::fetched_bytes, fetched), (Io::waited_ns, waited_ns)];
        of_ops(vec![reads(took_ns, &moved)])
    };
    let fetched = |fetched| job(fetched, IO_NS, IO_NS);
    let mut limits = vec![
        limit("cold_cache", "50 % to", fetched, bytes / 2, bytes / 2 - 1),
        limit("cold_cache", "1.5 times the bytes", fetched, bytes / 2 * 3 - 1, bytes / 2 * 3),
        limit("readahead_wasted", "1.5 times", fetched, bytes / 2 * 3, bytes / 2 * 3 - 1),
    ];
    for (rule, fetched) in [("cold_cache", bytes), ("readahead_wasted", 2 * bytes)] {
        let (in_io, of_reads) = ("20 % of the time in I/O", "50 % of their time");
        limits.push(limit(rule, in_io, |ns| job(fetched, FIFTH, ns), FIFTH, FIFTH - 1));
        let half = IO_NS / 2;
        limits.push(limit(rule, of_reads, |ns| job(fetched, IO_NS, ns), half, half - 1));
    }
    let paused = |ns| {
        let paused = [(Io::throttled, 1), (Io::throttled_ns, ns)];
        of_ops(vec![op("write", 1_000, 2 * TENTH, &paused)])
    };
    limits.push(limit("throttled_writes", "10 % of the time in I/O", paused, TENTH, TENTH - 1));
    limits
}

pub(super) fn direct() -> Vec<Limit> {
    let rule = "direct_reads";
    let job = |[follow, back]: [u64; 2], [bytes, device, fetched]: [u64; 3], took_ns, waited_ns| {
        of_ops(vec![reads(
            took_ns,
            &[
                (Io::consecutive, follow),
                (Io::random, back),
                (Io::bytes, bytes),
                (Io::device_read_bytes, device),
                (Io::fetched_bytes, fetched),
                (Io::waited_ns, waited_ns),
            ],
        )])
    };
    let (order, moved) = ([1_000, 0], [10 * MIB, 10 * MIB, 0]);
    let four_fifths = IO_NS / 5 * 4;
    vec![
        limit(rule, "20 % of the time in I/O", |ns| job(order, moved, FIFTH, ns), FIFTH, FIFTH - 1),
        limit(rule, "1.00k", |number| job([number, 0], moved, IO_NS, IO_NS), 1_000, 999),
        limit(
            rule,
            "below 1 MiB",
            |bytes| job(order, [bytes, bytes, 0], IO_NS, IO_NS),
            1_000 * MIB - 1,
            1_000 * MIB,
        ),
        limit(
            rule,
            "80 % begin",
            |follow| job([follow, 1_000 - follow], moved, IO_NS, IO_NS),
            800,
            799,
        ),
        limit(
            rule,
            "80 % of their time",
            |ns| job(order, moved, IO_NS, ns),
            four_fifths,
            four_fifths - 1,
        ),
        // What a device read, and what came into the cache nevertheless.
        limit(
            rule,
            "past the page cache",
            |device| job(order, [10 * MIB, device, 0], IO_NS, IO_NS),
            8 * MIB,
            8 * MIB - 1,
        ),
        limit(
            rule,
            "past the page cache",
            |fetched| job(order, [10 * MIB, 10 * MIB, fetched], IO_NS, IO_NS),
            2 * MIB - 1,
            2 * MIB,
        ),
    ]
}
