//! What a reading a second makes of work that comes in turns: by the ring, and by the driver's snapshot.

use std::time::Duration;

use super::*;

/// Between two samples of the driver's.
const SAMPLE_US: u64 = 139_000;
const SAMPLES: u64 = 72;
const READINGS: u64 = 60;

/// Time busy up to `at_us`, of work that keeps the device busy for the first half of each period.
fn busy_us(at_us: u64, period_us: u64) -> u64 {
    at_us / period_us * (period_us / 2) + (at_us % period_us).min(period_us / 2)
}

/// The ring at a time.
fn ring(at_us: u64, period_us: u64) -> Vec<Sample> {
    let last = at_us / SAMPLE_US;
    let sample = |index: u64| {
        let (from_us, to_us) = ((index - 1) * SAMPLE_US, index * SAMPLE_US);
        let busy_us = busy_us(to_us, period_us) - busy_us(from_us, period_us);
        (to_us, (busy_us * 100 / SAMPLE_US) as u32)
    };
    (last - SAMPLES..=last).map(sample).collect()
}

/// How far the mean of ten readings a second apart is from 50 % at most, in points: by the ring, and by the
/// newest sample alone.
fn worst(period_us: u64) -> [f64; 2] {
    let (begin, mut cursor) = (Instant::now(), Cursor::default());
    let mut readings = Vec::new();
    for second in 0..READINGS {
        let samples = ring((100 + second) * 1_000_000, period_us);
        let snapshot = f64::from(samples.last().unwrap().1);
        let now = begin + Duration::from_secs(second);
        let is_first = cursor.since_us(now).is_none();
        let by_ring = mean(samples, is_first, &mut cursor, now).unwrap();
        readings.push([by_ring as f64 / 10_000.0, snapshot]);
    }
    [0, 1].map(|way| {
        let off =
            |ten: &[[f64; 2]]| (ten.iter().map(|of| of[way]).sum::<f64>() / 10.0 - 50.0).abs();
        readings.windows(10).map(off).fold(0.0, f64::max)
    })
}

#[test]
fn work_of_about_a_second_is_seen_by_the_ring_alone() {
    for (period_ms, most_by_snapshot) in [(300, 20.0), (970, 50.0), (1000, 50.0), (5000, 20.0)] {
        let [by_ring, by_snapshot] = worst(period_ms * 1000);
        println!(
            "50 % in turns of {period_ms} ms, any 10 s: {by_ring:.1} points off by the ring, \
             {by_snapshot:.1} by snapshots"
        );
        assert!(by_ring < 5.0, "{period_ms} ms: {by_ring}");
        assert!(by_snapshot <= most_by_snapshot, "{period_ms} ms: {by_snapshot}");
        let is_near_a_second = (900..1100).contains(&period_ms);
        assert!(!is_near_a_second || by_snapshot > 25.0, "{period_ms} ms: {by_snapshot}");
    }
}

#[test]
fn what_was_counted_is_not_counted_again_and_garbage_never() {
    let (begin, mut cursor) = (Instant::now(), Cursor::default());
    let at = |s: u64| begin + Duration::from_secs(s);
    let s = |s: u64| s * 1_000_000;
    let ring = vec![(s(99), 90), (s(100), 10), (s(100) + 500_000, 30), (s(100), 4_000_000)];
    assert_eq!(mean(ring, true, &mut cursor, at(0)), Some(200_000), "the last second");
    assert_eq!(mean(vec![(s(100), 10)], false, &mut cursor, at(1)), None);
    assert_eq!(mean(vec![(s(100), 10), (s(101), 50)], false, &mut cursor, at(1)), Some(500_000));
    assert_eq!(mean(Vec::new(), false, &mut cursor, at(2)), None);
}
