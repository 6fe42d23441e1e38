//! What the reader of a comparison must know besides its numbers.

use super::{By, Measured, Options, Size, laws::Law, same};
use crate::{
    base::units::{bytes, cores as shown, percent},
    view::facts::WAITED,
};

/// Time on CPU that grows by more is another work, or busy waiting.
const ON_CPU_GROWS: f64 = 0.20;
/// An efficiency above this is more than cores alone give.
const BEYOND: f64 = 1.05;
/// Times of one size that differ by less are as equal as any.
const VARIES: f64 = 1.05;
/// Amounts read that differ by more, and are at least so large, are worth a word.
const FACTOR: f64 = 2.0;
const LEAST_BYTES: u64 = 64 << 20;
/// Fewer readings have no busiest moment.
const LEAST_READINGS: u64 = 3;

/// A sentence for each thing; the largest size did `work` times as much as the smallest.
pub fn notes(groups: &[&[&Measured]], sizes: &[Size], options: Options, work: f64) -> Vec<String> {
    let runs = || groups.iter().flat_map(|group| group.iter().copied());
    let once: Vec<_> = sizes.iter().filter(|size| size.jobs.len() == 1).map(cores).collect();
    let mut said = Vec::new();
    if !once.is_empty() {
        said.push(format!(
            "one run only of size {}: how much its time varies is unknown; repeat each size three times or more",
            once.join(", ")
        ));
    }
    said.extend(
        match sizes.len() {
            2 => Some(
                "two sizes: a law needs three (Amdahl's) or four (the universal scalability law)",
            ),
            3 => Some("three sizes: the universal scalability law needs four"),
            _ => None,
        }
        .map(str::to_owned),
    );
    said.extend(same::numbers(&runs().collect::<Vec<_>>(), options.by, options.weak));
    said.extend(kept_from_cores(groups, sizes));
    said.extend(beyond_its_cores(sizes));
    said.extend(overlaps(sizes));
    if options.by == By::Used && runs().any(|run| run.readings < LEAST_READINGS) {
        said.push(format!(
            "some runs were read fewer than {LEAST_READINGS} times: the cores busy at their busiest moment are an \
             average, and sizes so near to each other tell nothing"
        ));
    }
    if let [smallest, .., largest] = groups
        && let (Some(from), Some(to)) = (on_cpu(smallest), on_cpu(largest))
        && to / work > from * (1.0 + ON_CPU_GROWS)
    {
        let more = percent(to / work / from - 1.0);
        let cause = if options.weak {
            "the work grew by more than the size, or tasks wait busily (MPI, OpenMP)"
        } else {
            "tasks that wait busily (MPI, OpenMP) look busy; if the work grew with the size, add --weak"
        };
        said.push(format!("{more} more time on CPU at the largest size: {cause}"));
    }
    let read = || runs().filter_map(|run| run.read_bytes);
    if let (Some(least), Some(most)) = (read().min(), read().max())
        && most >= LEAST_BYTES
        && most as f64 > FACTOR * work * least as f64
    {
        said.push(format!(
            "{} to {} were read from disks: some runs found the data in the page cache, others did not",
            bytes(least),
            bytes(most)
        ));
    }
    said.extend(range(
        "nodes have",
        "CPUs: their speed may differ",
        runs().filter_map(|run| run.node_cores),
    ));
    said.extend(range(
        "runs had",
        "GPUs: the size here is cores alone",
        runs().map(|run| run.gpus as u64),
    ));
    said
}

/// Where other work had a part of the cores, as it says of jobs too.
fn kept_from_cores(groups: &[&[&Measured]], sizes: &[Size]) -> Option<String> {
    let missed = |group: &[&Measured]| {
        let known: Option<Vec<f64>> = group.iter().map(|run| run.missed).collect();
        known.map(|known| known.iter().sum::<f64>() / known.len() as f64)
    };
    let kept = groups.iter().zip(sizes).filter_map(|(group, size)| Some((missed(group)?, size)));
    let kept: Vec<_> = kept
        .filter(|(missed, _)| *missed >= WAITED)
        .map(|(missed, size)| format!("{} of size {}", percent(missed), cores(size)))
        .collect();
    (!kept.is_empty()).then(|| {
        format!(
            "runs did not get all the core time that they could have used ({} missed): usually other work ran there, \
             so what is serial here is not the program's alone; repeat them on cores that nobody else uses",
            kept.join(", ")
        )
    })
}

/// Where a run on fewer cores was faster than one on more, and another slower: by chance, as far as these runs tell.
fn overlaps(sizes: &[Size]) -> Option<String> {
    let is_wide = |size: &Size| size.most_ns as f64 > size.least_ns as f64 * VARIES;
    let pairs: Vec<_> = sizes
        .windows(2)
        .filter(|two| two[0].least_ns < two[1].most_ns && two[1].least_ns < two[0].most_ns)
        .filter(|two| two.iter().any(is_wide))
        .map(|two| format!("{} and {}", cores(&two[0]), cores(&two[1])))
        .collect();
    (!pairs.is_empty()).then(|| {
        format!(
            "runs of one size differ by more than the sizes do ({}): what is told of them may be chance; repeat them where \
             nobody else disturbs",
            pairs.join(", ")
        )
    })
}

/// Where more cores gained more than their number.
fn beyond_its_cores(sizes: &[Size]) -> Option<String> {
    let beyond: Vec<_> = sizes
        .iter()
        .filter(|size| size.efficiency > BEYOND)
        .map(|size| format!("{} on {}", percent(size.efficiency), cores(size)))
        .collect();
    (!beyond.is_empty()).then(|| {
        format!(
            "an efficiency of more than 100 % ({}): usually each core's part of the data fits into its caches from \
             some size on, or other work slowed the smallest runs; no law here knows of that, and what it foretells may \
             be too good",
            beyond.join(", ")
        )
    })
}

/// What usually keeps any law from fitting.
pub const UNEVEN: &str = "usually other work disturbed some runs, nodes differ, or data fits into caches from some size on";
/// And Amdahl's alone.
pub const WAITS: &str = "cores make each other wait, which it leaves out";

/// Why a law foretells nothing: it misses the measured times by this share.
pub fn misfit(law: Law, misses: f64, usually: &str) -> String {
    let (law, misses) = (law.in_words(), percent(misses));
    format!("{law} misses the measured times by {misses}, so it foretells nothing: {usually}")
}

/// A sentence where not all are alike.
fn range(what: &str, of: &str, values: impl Iterator<Item = u64> + Clone) -> Option<String> {
    let (least, most) = (values.clone().min()?, values.max()?);
    (least < most).then(|| format!("{what} {least} to {most} {of}"))
}

fn cores(size: &Size) -> String {
    shown((size.cores * 1000.0).round() as u64)
}

fn on_cpu(group: &[&Measured]) -> Option<f64> {
    let known: Option<Vec<u64>> = group.iter().map(|run| run.on_cpu_ns).collect();
    known.map(|known| known.iter().map(|ns| *ns as f64).sum::<f64>() / known.len() as f64)
}
