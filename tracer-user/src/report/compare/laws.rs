//! How time depends on the number of cores: Amdahl's law and Gunther's universal scalability law, fitted by least
//! squares, with ranges.
//!
//! Both are sums of terms that cannot be negative: `time = work / n + serial + coherency * (n - 1)`, Amdahl's without
//! the last. Relative errors are squared, for a run's noise grows with its time.

use serde::Serialize;

/// Terms of the longer law.
const TERMS: usize = 3;
/// Beyond so many times the largest size nothing is foretold.
pub const FORESIGHT: f64 = 2.0;
/// So much more cores must gain at least this share of it.
const MORE: f64 = 0.10;
const WORTH: f64 = 0.5;

/// The time of a size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Cores.
    pub cores: f64,
    /// Seconds that the work took.
    pub seconds: f64,
}

/// A law, by how many terms it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Amdahl's: a part is serial, the rest is shared out.
    Amdahl = 2,
    /// The universal scalability law: each core also makes each other one wait.
    Scalability = 3,
}

impl Law {
    /// Its name.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Amdahl => "Amdahl's law",
            Self::Scalability => "the universal scalability law",
        }
    }
}

/// What each core takes part in: the work, the serial part, the others' waiting.
fn terms(cores: f64) -> [f64; TERMS] {
    [1.0 / cores, 1.0, cores - 1.0]
}

/// A law with its numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit([f64; TERMS]);

impl Fit {
    /// The one with the least relative errors; `None` where there are fewer sizes than terms.
    pub fn of(law: Law, points: &[Point]) -> Option<Self> {
        let wanted = law as usize;
        (points.len() >= wanted).then_some(())?;
        // With so few terms each choice of those that are not zero can be tried.
        let choices = 1..1_usize << wanted;
        let fits = choices.filter_map(|choice| solve(choice, points));
        let fits = fits.filter(|fit| fit.0.iter().all(|term| *term >= 0.0));
        fits.min_by(|a, b| a.error(points).total_cmp(&b.error(points)))
    }

    /// By how much it misses the measured times, as a share of them: the root of the mean square.
    pub fn misses(&self, points: &[Point]) -> f64 {
        (self.error(points) / points.len() as f64).sqrt()
    }

    /// The squared relative errors.
    fn error(&self, points: &[Point]) -> f64 {
        points.iter().map(|point| (self.seconds(point.cores) / point.seconds - 1.0).powi(2)).sum()
    }

    /// Seconds on so many cores.
    pub fn seconds(&self, cores: f64) -> f64 {
        terms(cores).iter().zip(self.0).map(|(term, factor)| term * factor).sum()
    }

    /// The share of the time on one core that more cores do not shorten: Amdahl's serial fraction, Gunther's
    /// contention.
    pub fn serial(&self) -> f64 {
        self.0[1] / self.seconds(1.0)
    }

    /// What each core costs each other one, as a share of the time on one core: Gunther's coherency.
    pub fn coherency(&self) -> f64 {
        self.0[2] / self.seconds(1.0)
    }

    /// Cores on which it takes least; infinite where more never take longer.
    pub fn fastest_cores(&self) -> f64 {
        if self.0[2] > 0.0 { (self.0[0] / self.0[2]).sqrt() } else { f64::INFINITY }
    }

    /// Cores past which a tenth more gain less than half of a tenth; `most` where that is further away.
    pub fn worth_cores(&self, least: f64, most: f64) -> f64 {
        let gained = |cores: f64| gain(self.seconds(cores), self.seconds(cores * (1.0 + MORE)));
        let (mut from, mut to) = (least, most);
        if gained(most) >= MORE * WORTH {
            return most;
        }
        // What is gained only falls with the size.
        for _ in 0..60 {
            let middle = (from + to) / 2.0;
            if gained(middle) >= MORE * WORTH { from = middle } else { to = middle }
        }
        from
    }
}

/// How much faster the second is, as a share.
fn gain(before: f64, after: f64) -> f64 {
    before / after - 1.0
}

/// What a tenth more cores gained each, on the way from one size to the next.
pub fn gain_of_a_tenth(from: Point, to: Point) -> f64 {
    let tenths = (to.cores / from.cores).ln() / (1.0 + MORE).ln();
    (from.seconds / to.seconds).powf(1.0 / tenths) - 1.0
}

/// Karp and Flatt's serial fraction between two sizes: that of the law of Amdahl through both. Above one where more
/// cores took longer, below zero where they gained more than there are of them; `None` where no such law is.
pub fn karp_flatt(from: Point, to: Point) -> Option<f64> {
    let work = (from.seconds - to.seconds) / (1.0 / from.cores - 1.0 / to.cores);
    let serial = from.seconds - work / from.cores;
    Some(serial / (serial + work)).filter(|_| serial + work > 0.0)
}

/// The least squares of the terms in `choice`, by their bits; `None` where they are not independent here.
fn solve(choice: usize, points: &[Point]) -> Option<Fit> {
    let chosen: Vec<usize> = (0..TERMS).filter(|term| choice & 1 << term != 0).collect();
    let row = |point: &Point| terms(point.cores).map(|term| term / point.seconds);
    let rows: Vec<[f64; TERMS]> = points.iter().map(row).collect();
    // Terms of like size, so that the equations are sound.
    let scale = |term: usize| rows.iter().map(|row| row[term].powi(2)).sum::<f64>().sqrt();
    let scales: Vec<f64> = chosen.iter().map(|term| scale(*term)).collect();
    let size = chosen.len();
    // The normal equations, with their right-hand side as the last column.
    let mut of = vec![vec![0.0; size + 1]; size];
    for row in &rows {
        let scaled: Vec<f64> =
            chosen.iter().zip(&scales).map(|(term, scale)| row[*term] / scale).collect();
        for (at, equation) in of.iter_mut().enumerate() {
            for (value, other) in equation.iter_mut().zip(scaled.iter().chain([&1.0])) {
                *value += scaled[at] * other;
            }
        }
    }
    let solved = eliminate(of)?;
    let mut factors = [0.0; TERMS];
    for ((term, value), scale) in chosen.iter().zip(solved).zip(scales) {
        factors[*term] = value / scale;
    }
    Some(Fit(factors)).filter(|fit| fit.0.iter().all(|factor| factor.is_finite()))
}

/// Gauss and Jordan, with pivots.
fn eliminate(mut of: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    const LEAST: f64 = 1e-12;
    for at in 0..of.len() {
        let pivot = (at..of.len()).max_by(|a, b| of[*a][at].abs().total_cmp(&of[*b][at].abs()))?;
        of.swap(at, pivot);
        let row = of[at].clone();
        if row[at].abs() < LEAST {
            return None;
        }
        for (other, equation) in of.iter_mut().enumerate() {
            let factor = if other == at { 1.0 - 1.0 / row[at] } else { equation[at] / row[at] };
            equation.iter_mut().zip(&row).for_each(|(value, of_row)| *value -= factor * of_row);
        }
    }
    of.iter().map(|equation| equation.last().copied()).collect()
}

/// A value, and between which two it lies if any one of the sizes is left out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Range {
    /// Of all sizes.
    pub all: f64,
    /// The least, with one size left out or none.
    pub low: f64,
    /// The most.
    pub high: f64,
}

impl Range {
    /// Of sizes up to which more cores are worth it: whether some are beyond `least`.
    pub fn gains_from(&self, least: f64) -> bool {
        self.high > least * 1.001
    }
}

/// A law fitted to all sizes, and to all but one.
pub struct Fits {
    /// To all.
    pub all: Fit,
    /// Without each.
    without: Vec<Fit>,
}

impl Fits {
    /// The fits of `law`; `None` where there is not one size more than it has terms.
    pub fn of(law: Law, points: &[Point]) -> Option<Self> {
        (points.len() > law as usize).then_some(())?;
        let without = |at: usize| {
            let others = points.iter().enumerate().filter(|(other, _)| *other != at);
            Fit::of(law, &others.map(|(_, point)| *point).collect::<Vec<_>>())
        };
        Some(Self {
            all: Fit::of(law, points)?,
            without: (0..points.len()).filter_map(without).collect(),
        })
    }

    /// The range of `value`.
    pub fn range(&self, value: impl Fn(&Fit) -> f64) -> Range {
        let all = value(&self.all);
        let values = || self.without.iter().map(&value).chain([all]);
        let (low, high) =
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        Range { all, low, high }
    }
}

#[cfg(test)]
mod tests;
