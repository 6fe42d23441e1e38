//! Many lines as one: what each job did on each node in all of their time.
//!
//! Pure. Counters and histograms add up, a peak is the highest, a state the newest, in whatever order the
//! lines come. Refuses to find lines that are there twice: whoever reads files reads each once.

use std::collections::BTreeMap;

use tracer_ebpf::loglinear::bucket_high;

use super::decode::{Bucket, Figures, Skipped, Told, What, decode};
use crate::model::{
    group::{Group, Value},
    hist::{Hist, MAX_COUNT},
    info::Facts,
    job::{Job, JobStats},
    point::{FieldValue, Origin, Point},
};

/// What was told of one job on one node.
#[derive(Clone, Debug, PartialEq)]
pub struct JobTold {
    /// The node.
    pub origin: Origin,
    /// Its values, added up.
    pub stats: JobStats,
    /// Begin of the first interval, nanoseconds since the Unix epoch; the first line's time where no line
    /// has its interval's length.
    pub from_ns: u64,
    /// Time of the last line.
    pub to_ns: u64,
    /// What `job_info` says of it.
    pub facts: Facts,
    /// Its totals by their names, as its end was told.
    pub totals: BTreeMap<String, FieldValue>,
}

/// Lines so far.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    jobs: BTreeMap<(Origin, Job), Known>,
    skipped: Skipped,
}

#[derive(Clone, Debug, Default)]
struct Known {
    span: Option<(u64, u64)>,
    series: Vec<Series>,
    facts: Facts,
    facts_ns: u64,
    totals: BTreeMap<String, FieldValue>,
}

/// One series, its histograms apart.
#[derive(Clone, Debug)]
struct Series {
    group: Group,
    newest_ns: u64,
    hists: BTreeMap<usize, Parts>,
}

/// What is known of a histogram. Sums that no node counts in decades are of damaged lines, which are left
/// out.
#[derive(Clone, Debug, Default)]
struct Parts {
    /// By the figures of lines of values; `None`: there were none.
    sketch: Option<Hist>,
    /// Counts by bucket, each its own, and their sum.
    own: BTreeMap<usize, u64>,
    own_sum: u64,
    /// Counts by bucket up to its bound.
    cumulative: BTreeMap<usize, u64>,
}

impl Gathered {
    /// Adds a line.
    pub fn add(&mut self, point: &Point) {
        let Some(Told { origin, job, time_ns, span_ns, what }) = decode(point, &mut self.skipped)
        else {
            return;
        };
        let known = self.jobs.entry((origin, job)).or_default();
        let from_ns = time_ns.saturating_sub(span_ns.unwrap_or(0));
        let (first, last) = known.span.unwrap_or((from_ns, time_ns));
        known.span = Some((first.min(from_ns), last.max(time_ns)));
        match what {
            What::Values(group, hists) => {
                self.skipped.fields += known.values(time_ns, group, &hists);
            }
            What::Bucket(bucket) => self.skipped.fields += u64::from(!known.bucket(bucket)),
            What::Facts(facts, totals) => known.facts(time_ns, &facts, totals),
        }
    }

    /// What was left out so far.
    pub fn skipped(&self) -> Skipped {
        self.skipped
    }

    /// What they tell, by node and job.
    pub fn finish(self) -> Vec<JobTold> {
        let told = self.jobs.into_iter().map(|((origin, job), known)| {
            let (from_ns, to_ns) = known.span.unwrap_or_default();
            let groups = known.series.into_iter().map(Series::finish).collect();
            let (facts, totals) = (known.facts, known.totals);
            JobTold { origin, stats: JobStats { job, groups }, from_ns, to_ns, facts, totals }
        });
        told.collect()
    }
}

impl Known {
    fn series(&mut self, group: &Group) -> &mut Series {
        let at = self.series.iter().position(|known| known.group.same_series(group));
        let at = at.unwrap_or_else(|| {
            let group = Group::unknown(group.measurement, group.tags.clone());
            self.series.push(Series { group, newest_ns: 0, hists: BTreeMap::new() });
            self.series.len() - 1
        });
        &mut self.series[at]
    }

    /// How many histograms are none that a node counted.
    fn values(&mut self, time_ns: u64, mut group: Group, hists: &[(usize, Figures)]) -> u64 {
        let series = self.series(&group);
        if time_ns >= series.newest_ns {
            series.newest_ns = time_ns;
            series.group.follow(&group);
        } else {
            group.follow(&series.group);
            series.group = group;
        }
        let mut refused = 0;
        for (field, figures) in hists {
            let sketch = &mut series.hists.entry(*field).or_default().sketch;
            let sketch = sketch.get_or_insert_default();
            if sketch.count().saturating_add(figures.count) <= MAX_COUNT {
                sketch.merge(&figures.sketch());
            } else {
                refused += 1;
            }
        }
        refused
    }

    /// Whether a node can have counted it.
    fn bucket(&mut self, bucket: Bucket) -> bool {
        let Bucket { series, field, index, count, is_cumulative } = bucket;
        let parts = self.series(&series).hists.entry(field).or_default();
        let (counts, sum) = if is_cumulative {
            (&mut parts.cumulative, &mut 0)
        } else {
            (&mut parts.own, &mut parts.own_sum)
        };
        let known = counts.entry(index).or_default();
        let is_sound = known.max(sum).saturating_add(count) <= MAX_COUNT;
        if is_sound {
            *known += count;
            *sum += count;
        }
        is_sound
    }

    /// The newest of each fact stands.
    fn facts(&mut self, time_ns: u64, facts: &Facts, totals: BTreeMap<String, FieldValue>) {
        if time_ns >= self.facts_ns {
            self.facts_ns = time_ns;
            self.facts.extend(facts);
            self.totals.extend(totals);
        } else {
            let newer = std::mem::replace(&mut self.facts, facts.clone());
            self.facts.extend(&newer);
            let newer = std::mem::replace(&mut self.totals, totals);
            self.totals.extend(newer);
        }
    }
}

impl Series {
    fn finish(self) -> Group {
        let mut group = self.group;
        for (field, parts) in self.hists {
            group.values[field] = Some(Value::Histogram(parts.finish()));
        }
        group
    }
}

impl Parts {
    /// With the buckets, where all values have one; else as the figures let it be guessed. A histogram of
    /// buckets alone has no sum, and for its largest value the highest bucket's bound.
    fn finish(self) -> Hist {
        let mut hist = self.buckets();
        let Some(sketch) = self.sketch else {
            let highest = hist.buckets().last().map(|(index, _)| index);
            hist.max = highest.map_or(0, bucket_high);
            return hist;
        };
        if hist.count() != sketch.count() {
            return sketch;
        }
        (hist.sum, hist.max) = (sketch.sum, sketch.max);
        hist
    }

    fn buckets(&self) -> Hist {
        let mut hist = Hist::from_buckets(0, 0, self.own.iter().map(|(at, count)| (*at, *count)));
        let mut below = 0;
        for (at, up_to) in &self.cumulative {
            hist.add(*at, up_to.saturating_sub(below));
            below = below.max(*up_to);
        }
        hist
    }
}
