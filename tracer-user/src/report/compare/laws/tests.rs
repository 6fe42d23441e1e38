//! Known curves give known numbers, and the ranges hold what they should as often as docs/decisions/0027 says.

use super::*;

/// 100 s on one core, so much of it serial, with so much coherency.
fn curve(serial: f64, coherency: f64, sizes: &[f64]) -> Vec<Point> {
    let seconds =
        |n: f64| 100.0 * ((1.0 - serial - coherency * 0.0) / n + serial + coherency * (n - 1.0));
    sizes.iter().map(|cores| Point { cores: *cores, seconds: seconds(*cores) }).collect()
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * (1.0 + other.abs())
}

const SIZES: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];

#[test]
fn known_curves_give_their_numbers_back() {
    for serial in [0.0, 0.001, 0.02, 0.3, 1.0] {
        for sizes in [&SIZES[..3], &SIZES, &[3.0, 12.0, 48.0, 4096.0]] {
            let fits = Fits::of(Law::Amdahl, &curve(serial, 0.0, sizes)).unwrap();
            let range = fits.range(Fit::serial);
            assert!(
                [range.all, range.low, range.high].iter().all(|s| close(*s, serial)),
                "{range:?}"
            );
        }
    }
    for (serial, coherency) in [(0.05, 0.001), (0.0, 0.01), (0.2, 0.0), (0.02, 1e-5)] {
        let fits = Fits::of(Law::Scalability, &curve(serial, coherency, &SIZES)).unwrap();
        let (found, cost) = (fits.range(Fit::serial), fits.range(Fit::coherency));
        assert!(
            (found.all - serial).abs() < 1e-7 && (found.high - serial).abs() < 1e-6,
            "{found:?}"
        );
        assert!(
            (cost.all - coherency).abs() < 1e-7 && (cost.low - coherency).abs() < 1e-6,
            "{cost:?}"
        );
        let fastest = ((1.0 - serial) / coherency).sqrt();
        assert!((fits.all.fastest_cores() / fastest - 1.0).abs() < 1e-3 || coherency == 0.0);
    }
}

#[test]
fn a_law_needs_one_size_more_than_it_has_numbers() {
    let points = curve(0.1, 0.0, &SIZES);
    assert!(Fits::of(Law::Amdahl, &points[..2]).is_none());
    assert!(Fits::of(Law::Amdahl, &points[..3]).is_some());
    assert!(Fits::of(Law::Scalability, &points[..3]).is_none());
    assert!(Fits::of(Law::Scalability, &points[..4]).is_some());
}

#[test]
fn no_part_is_negative_whatever_the_times() {
    // Faster than there are cores; slower with each; without order; all alike.
    for seconds in [[100.0, 40.0, 15.0, 6.0], [1.0, 2.0, 3.0, 9.0], [5.0, 1.0, 7.0, 2.0], [3.0; 4]]
    {
        let points: Vec<_> = SIZES
            .iter()
            .zip(seconds)
            .map(|(cores, seconds)| Point { cores: *cores, seconds })
            .collect();
        for law in [Law::Amdahl, Law::Scalability] {
            let fits = Fits::of(law, &points).unwrap();
            let (serial, cost) = (fits.range(Fit::serial), fits.range(Fit::coherency));
            assert!(serial.low >= 0.0 && serial.high <= 1.0, "{seconds:?}: {serial:?}");
            assert!(cost.low >= 0.0 && cost.high.is_finite(), "{seconds:?}: {cost:?}");
        }
    }
}

#[test]
fn karp_and_flatt_is_amdahls_fraction_whatever_the_smaller_size() {
    let points = curve(0.07, 0.0, &SIZES);
    for at in 1..points.len() {
        assert!(close(karp_flatt(points[at - 1], points[at]).unwrap(), 0.07));
        assert!(close(karp_flatt(points[0], points[at]).unwrap(), 0.07));
    }
    let of =
        |seconds| karp_flatt(Point { cores: 1.0, seconds: 10.0 }, Point { cores: 2.0, seconds });
    assert!(of(10.0).is_some_and(|serial| close(serial, 1.0)), "nothing gained");
    assert!(of(12.0).is_some_and(|serial| close(serial, 1.4)), "lost");
    assert!(of(4.0).is_some_and(|serial| close(serial, -0.2)), "gained more than there is");
}

#[test]
fn a_tenth_more_gains_a_tenth_where_all_is_shared_out_and_nothing_where_nothing_is() {
    let gain = |serial: f64| {
        let points = curve(serial, 0.0, &[2.0, 7.0]);
        gain_of_a_tenth(points[0], points[1])
    };
    assert!(close(gain(0.0), 0.10) && close(gain(1.0), 0.0), "{} {}", gain(0.0), gain(1.0));
    // Where a tenth more gain half of it, (s + p/n) / (s + p/1.1n) = 1.05: n = p/s * (1 - 1.05/1.1) / 0.05.
    let fit = Fit::of(Law::Amdahl, &curve(0.1, 0.0, &SIZES)).unwrap();
    let expected = 9.0 * (1.0 - 1.05 / 1.1) / 0.05;
    assert!((fit.worth_cores(1.0, 64.0) - expected).abs() < 1e-6);
    assert!(close(fit.worth_cores(1.0, 4.0), 4.0), "further than is to be told");
    let serial = Fit::of(Law::Amdahl, &curve(1.0, 0.0, &SIZES)).unwrap();
    assert!(close(serial.worth_cores(1.0, 64.0), 1.0));
}

/// How often the range of Amdahl's fraction holds the true 2 %, of 2,000 draws of these sizes with times that are
/// off by up to `noise`. A generator of our own: the same draws each time.
fn held(sizes: &[f64], noise: f64) -> (f64, f64) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let (mut hits, mut wide) = (0, 0.0);
    const DRAWS: usize = 2_000;
    for _ in 0..DRAWS {
        let mut points = curve(0.02, 0.0, sizes);
        for point in &mut points {
            point.seconds *= 1.0 + noise * (2.0 * random() - 1.0);
        }
        let range = Fits::of(Law::Amdahl, &points).unwrap().range(Fit::serial);
        hits += usize::from(range.low <= 0.02 && 0.02 <= range.high);
        wide += range.high - range.low;
    }
    (hits as f64 / DRAWS as f64, wide / DRAWS as f64)
}

#[test]
fn a_range_holds_the_truth_as_often_as_is_said() {
    for (sizes, noise, least, most) in
        [(&SIZES[..3], 0.10, 0.5, 0.95), (&SIZES[..4], 0.10, 0.5, 0.95), (&SIZES, 0.05, 0.5, 0.95)]
    {
        let (hits, wide) = held(sizes, noise);
        eprintln!(
            "{} sizes, {noise}: {hits:.2} of the ranges hold it, {wide:.3} wide",
            sizes.len()
        );
        assert!((least..=most).contains(&hits), "{} sizes: {hits}", sizes.len());
    }
}
