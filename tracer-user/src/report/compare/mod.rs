//! The same work at several sizes: speed-up, efficiency, laws of scaling, and what grows with the size.
//!
//! Pure: runs in, a comparison out, which `text` and JSON write. Times are measured, laws are fitted: what is foretold
//! is a range, and goes no further than twice the largest size. Refuses runs that did not do the same work.

mod growth;
mod laws;
mod measured;
mod notes;
mod same;
mod text;

pub use {
    growth::{Grown, Growth},
    laws::Range,
    measured::{By, Measured},
    text::render,
};

use anyhow::{Result, bail, ensure};
use serde::Serialize;

use crate::base::units::cores as shown;
use laws::{FORESIGHT, Fit, Fits, Law, Point, gain_of_a_tenth, karp_flatt};

/// A law that misses the measured times by more than this share foretells nothing.
const MOST_MISSED: f64 = 0.10;

/// How to compare.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// What the size is.
    pub by: By,
    /// Whether the work grows as the size does (Gustafson).
    pub weak: bool,
    /// Whether to compare what is not the same work.
    pub force: bool,
}

/// All that is said.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The name of the smallest runs.
    pub name: String,
    /// What the size is.
    pub by: By,
    /// Whether the work grew as the size did.
    pub weak: bool,
    /// From the smallest on.
    pub sizes: Vec<Size>,
    /// Amdahl's law, from three sizes on, where it fits.
    pub amdahl: Option<Amdahl>,
    /// The universal scalability law, from four sizes on, where it fits.
    pub scalability: Option<Scalability>,
    /// Cores past which a tenth more gain less than half of a tenth, by the longer of these; at most twice the largest
    /// size.
    pub worth_cores: Option<Range>,
    /// What grew from the smallest to the largest size.
    pub growth: Option<Growth>,
    /// Why it is not the same work (with `force`).
    pub differences: Vec<String>,
    /// What the reader must know.
    pub notes: Vec<String>,
}

/// The runs of one size.
#[derive(Debug, Serialize)]
pub struct Size {
    /// Cores.
    pub cores: f64,
    /// The jobs' ids, the earliest first.
    pub jobs: Vec<String>,
    /// The median of their times, the shortest and the longest, ns.
    pub median_ns: u64,
    /// The shortest.
    pub least_ns: u64,
    /// The longest.
    pub most_ns: u64,
    /// The median of their waits in the queue, ns, where each is known.
    pub queued_ns: Option<u64>,
    /// Cores used on average, where known.
    pub cores_used: Option<f64>,
    /// Times as fast as the smallest size.
    pub speed_up: f64,
    /// Share of the speed-up that as many times the cores would be.
    pub efficiency: f64,
    /// Karp and Flatt's serial fraction, from the smallest size to this.
    pub serial_fraction: Option<f64>,
    /// What a tenth more cores gained each, on the way from the size before.
    pub gain_of_a_tenth: Option<f64>,
}

/// Amdahl's law.
#[derive(Debug, Serialize)]
pub struct Amdahl {
    /// The part of the time on one core that is not shared out.
    pub serial_fraction: Range,
    /// Seconds on twice the largest size; of work that grows, of the smallest size's.
    pub seconds_at_twice: Range,
}

/// The universal scalability law.
#[derive(Debug, Serialize)]
pub struct Scalability {
    /// The part of the time on one core for which cores queue.
    pub contention: Range,
    /// What each core costs each other one, as a part of that time.
    pub coherency: Range,
    /// Cores on which it takes least, where that is no further than twice the largest size.
    pub fastest_cores: Option<Range>,
    /// As above.
    pub seconds_at_twice: Range,
}

/// Compares `runs`, in whatever order.
///
/// # Errors
/// When a size is unknown, there is one size only, or the work is not the same; the message says what to do.
pub fn compare(runs: &[Measured], options: Options) -> Result<Comparison> {
    let by = options.by;
    let mut runs: Vec<&Measured> = runs.iter().collect();
    let size = |run: &Measured| run.cores(by).unwrap_or(0.0);
    runs.sort_by(|a, b| {
        let key = |run: &Measured| (run.begin_ns, run.job.clone());
        size(a).total_cmp(&size(b)).then_with(|| key(a).cmp(&key(b)))
    });
    if let Some(run) = runs.iter().find(|run| run.cores(by).is_none_or(|cores| cores <= 0.0)) {
        bail!("the {} of {} are unknown", by.in_words(), run.job);
    }
    if let Some(run) = runs.iter().find(|run| run.elapsed_ns == 0) {
        bail!("{} was counted for no time at all", run.job);
    }
    let groups = of_one_size(&runs, by);
    let [smallest, .., largest] = &*groups else { bail!("{}", one_size(&runs, by)) };
    let differences = same::differences(&runs, by, options.weak);
    ensure!(
        differences.is_empty() || options.force,
        "these runs did not do the same work (--force compares them all the same):\n  {}",
        differences.join("\n  ")
    );
    // The median of what was measured.
    let size = |group: &[&Measured]| {
        let at = |at: usize| group[at].cores(by).unwrap_or(0.0);
        at((group.len() - 1) / 2).midpoint(at(group.len() / 2))
    };
    let (least, most) = (size(smallest), size(largest));
    // Of work that grows, all is told of the smallest size's: then both kinds obey the same laws.
    let work = |cores: f64| if options.weak { cores / least } else { 1.0 };
    let mut sizes: Vec<Size> = Vec::new();
    let mut points: Vec<Point> = Vec::new();
    for group in &groups {
        let cores = size(group);
        let (median_ns, least_ns, most_ns) = times(group);
        let point = Point { cores, seconds: median_ns as f64 / 1e9 / work(cores) };
        let first = *points.first().unwrap_or(&point);
        let speed_up = first.seconds / point.seconds;
        let is_first = points.is_empty();
        sizes.push(Size {
            cores,
            jobs: group.iter().map(|run| run.job.clone()).collect(),
            median_ns,
            least_ns,
            most_ns,
            queued_ns: queued(group),
            cores_used: used(group),
            speed_up,
            efficiency: speed_up / (cores / first.cores),
            serial_fraction: (!is_first).then(|| karp_flatt(first, point)).flatten(),
            gain_of_a_tenth: points.last().map(|before| gain_of_a_tenth(*before, point)),
        });
        points.push(point);
    }
    let furthest = most * FORESIGHT;
    let mut misfits = Vec::new();
    let mut fitted = |law: Law, usually: &str| {
        let fits = Fits::of(law, &points)?;
        let misses = fits.all.misses(&points);
        if misses <= MOST_MISSED {
            return Some(fits);
        }
        misfits.push(notes::misfit(law, misses, usually));
        None
    };
    // Less than a core has no other cores to wait for.
    let scalability = (least >= 1.0).then(|| fitted(Law::Scalability, notes::UNEVEN)).flatten();
    let usually = if scalability.is_some() { notes::WAITS } else { notes::UNEVEN };
    let amdahl = fitted(Law::Amdahl, usually);
    let longest = scalability.as_ref().or(amdahl.as_ref());
    Ok(Comparison {
        name: smallest[0].name.clone(),
        by,
        weak: options.weak,
        worth_cores: longest.map(|fits| fits.range(|fit| fit.worth_cores(least, furthest))),
        amdahl: amdahl.map(|fits| Amdahl {
            serial_fraction: fits.range(Fit::serial),
            seconds_at_twice: fits.range(|fit| fit.seconds(furthest)),
        }),
        scalability: scalability.map(|fits| Scalability {
            contention: fits.range(Fit::serial),
            coherency: fits.range(Fit::coherency),
            fastest_cores: Some(fits.range(Fit::fastest_cores))
                .filter(|range| range.all <= furthest && range.high.is_finite()),
            seconds_at_twice: fits.range(|fit| fit.seconds(furthest)),
        }),
        growth: growth::growth(smallest, largest, work(most)),
        notes: [misfits, notes::notes(&groups, &sizes, options, work(most))].concat(),
        differences,
        sizes,
    })
}

/// Runs, from the smallest on, each with those that are as large as the smallest of them.
fn of_one_size<'a, 'b>(runs: &'b [&'a Measured], by: By) -> Vec<&'b [&'a Measured]> {
    let mut groups = Vec::new();
    let mut rest = runs;
    while let Some(first) = rest.first() {
        let count = rest.iter().take_while(|run| run.is_as_large(first, by)).count().max(1);
        let (group, others) = rest.split_at(count);
        groups.push(group);
        rest = others;
    }
    groups
}

/// The median of the times, the shortest and the longest.
fn times(group: &[&Measured]) -> (u64, u64, u64) {
    let mut times: Vec<u64> = group.iter().map(|run| run.elapsed_ns).collect();
    times.sort_unstable();
    (median(&times), times[0], times[times.len() - 1])
}

/// The median of the waits in the queue.
fn queued(group: &[&Measured]) -> Option<u64> {
    let mut waits = group.iter().map(|run| run.queued_ns).collect::<Option<Vec<u64>>>()?;
    waits.sort_unstable();
    Some(median(&waits))
}

fn median(sorted: &[u64]) -> u64 {
    sorted[(sorted.len() - 1) / 2].midpoint(sorted[sorted.len() / 2])
}

/// Cores used on average, the mean of the runs.
fn used(group: &[&Measured]) -> Option<f64> {
    let used = |run: &&Measured| Some(run.on_cpu_ns? as f64 / run.elapsed_ns as f64);
    let known: Option<Vec<f64>> = group.iter().map(used).collect();
    known.map(|known| known.iter().sum::<f64>() / known.len() as f64)
}

fn one_size(runs: &[&Measured], by: By) -> String {
    let Some(size) = runs.first().and_then(|run| run.cores(by)) else {
        return "there is no run to compare".to_owned();
    };
    let count = match runs.len() {
        1 => "there is one run".to_owned(),
        count => format!("there are {count} runs, all"),
    };
    let cure = match by {
        By::Allocated => "; --size used goes by the cores that were busy",
        By::Used => "",
    };
    let cores = shown((size * 1000.0) as u64);
    format!("{count} of size {cores} ({}): comparing needs two sizes or more{cure}", by.in_words())
}

#[cfg(test)]
mod tests;
