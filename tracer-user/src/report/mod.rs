//! The report of a job: what happened with it, where its time went, what to change, what to ask for next time.
//!
//! Pure: records in, a document out, which `text`, `html` and `json` write. It says things in the summary's words
//! (`view`), which it only adds to: several nodes, the time line, what was asked of the scheduler.

mod advice;
mod balance;
pub mod compare;
mod devices;
pub mod findings;
mod growth;
pub mod html;
mod identity;
mod idle;
pub mod jobs;
pub mod json;
mod list;
mod nodes;
pub mod now;
mod parts;
mod short;
pub mod software;
mod text;
mod timeline;
mod told;
mod unseen;
pub mod usage;
mod used;
mod whole;

pub(crate) use text::blocks;
pub use {
    advice::{Advice, Next},
    devices::Device,
    identity::{Who, moment},
    nodes::Node,
    parts::PartRow,
    short::short,
    text::render,
    timeline::{Course, Track},
    whole::Whole,
};

use serde::{Serialize, Serializer};

use crate::{
    base::{
        text::clean,
        units::{long_duration, percent},
    },
    scheduler::Told,
    view::{
        demand::Demand, details, facts::Facts, file_ops::AllFileOps, files::AllFiles, gpu_idle,
        io_threads::AllThreads, line::Tone, node_use::NodeUse, request::Request, rules, shares,
        slow_ops::SlowRow,
    },
};

/// All that a report says; texts are made harmless.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Which job it is, and how it ended.
    pub who: Who,
    /// What its scheduler tells of it, as it told it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<Told>,
    /// The same in words, and where it differs from the record.
    pub scheduler_says: Vec<String>,
    /// What it used of what it had.
    pub used: Vec<Bar>,
    /// What the bars of `time` are shares of.
    pub time_of: String,
    /// Where the time went.
    pub time: Vec<Bar>,
    /// What it was blocked on and slept for.
    pub causes: Vec<String>,
    /// Its page faults.
    pub faults: Option<String>,
    /// Why GPUs were idle.
    pub gpu_idle: Vec<Bar>,
    /// Its course.
    pub course: Course,
    /// Disks and file systems.
    pub devices: Vec<Device>,
    /// Rows of these that there was no room for.
    pub more_devices: usize,
    /// Operations on files, where they were asked for.
    #[serde(skip_serializing_if = "is_empty")]
    pub io: AllFileOps,
    /// Files and folders, in the same way.
    #[serde(skip_serializing_if = "has_no_files")]
    pub files: AllFiles,
    /// The operations that took longest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowRow>,
    /// What was done to files by program and by thread.
    #[serde(skip_serializing_if = "has_no_threads")]
    pub threads: AllThreads,
    /// Its nodes, the busiest first.
    pub nodes: Vec<Node>,
    /// How evenly these computed.
    pub balance: Option<String>,
    /// Its steps and their tasks, the busiest first.
    pub parts: Vec<PartRow>,
    /// How evenly the tasks of its largest step computed.
    pub parts_balance: Option<String>,
    /// What stands out and what to change, what costs most first.
    pub advice: Vec<Advice>,
    /// What to ask for next time.
    pub next: Vec<Next>,
    /// What is not in these numbers.
    pub unseen: Vec<String>,
    /// All rules that speak, those included for which there is no room.
    #[serde(skip)]
    rules: Vec<&'static str>,
}

/// A share with its words.
#[derive(Debug, Serialize)]
pub struct Bar {
    /// Whose share: `Cores`.
    pub name: String,
    /// What kind of thing it is.
    #[serde(skip)]
    pub(crate) tone: Tone,
    /// The share of one; may be above it.
    #[serde(serialize_with = "finite", skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The numbers behind it.
    pub words: String,
}

fn is_empty(io: &AllFileOps) -> bool {
    io.rows.is_empty()
}

fn has_no_files(all: &AllFiles) -> bool {
    all.files.is_empty()
}

fn has_no_threads(all: &AllThreads) -> bool {
    all.threads.is_empty()
}

/// JSON has no infinity.
fn finite<S: Serializer>(share: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    share.filter(|share| share.is_finite()).serialize(serializer)
}

impl Report {
    /// The report of a job, for readers who can be shown more than ASCII, or not.
    pub fn of(whole: &Whole, unicode: bool) -> Self {
        let facts = facts(whole, unicode);
        let time = shares::rows(&facts).into_iter().map(|row| time_bar(&row, &facts));
        let causes = [details::blocked_in_words(&facts), details::asleep_in_words(&facts)];
        let advice = advice::advice(&facts);
        let of_nodes = balance::of_nodes(whole, unicode);
        let of_tasks = balance::of_tasks(whole, unicode);
        let (devices, more_devices) = devices::devices(&facts);
        let who = Who::of(&whole.record, &facts);
        let told = whole.told.as_ref().map(|told| told::in_words(told, unicode));
        Self {
            scheduler: whole.told.clone(),
            scheduler_says: told.into_iter().chain(cleaned(&whole.said, unicode)).collect(),
            used: used::bars(&facts, whole),
            time_of: shares::aside(&facts),
            time: time.collect(),
            causes: causes.into_iter().flatten().collect(),
            faults: details::faults_in_words(&facts),
            gpu_idle: gpu_idle(&facts),
            course: Course::of(&whole.record.timeline, &facts),
            devices,
            more_devices,
            io: AllFileOps::of(&facts),
            files: AllFiles::of(&facts),
            slowest: SlowRow::all(&facts),
            threads: AllThreads::of(&facts),
            nodes: nodes::nodes(whole, unicode),
            balance: of_nodes.as_ref().and_then(balance::in_words),
            parts: parts::parts(whole, unicode),
            parts_balance: of_tasks.as_ref().and_then(balance::in_words),
            next: advice::next(&facts, &advice),
            advice,
            unseen: unseen::unseen(&facts, &whole.record, &who),
            who,
            rules: rules::findings(&facts).into_iter().map(|(rule, _)| rule.id).collect(),
        }
    }

    /// The names of all rules that speak, those included for which there is no room.
    pub fn rules(&self) -> Vec<&'static str> {
        self.rules.clone()
    }
}

/// The facts of a whole job, with what only records tell.
pub(crate) fn facts(whole: &Whole, unicode: bool) -> Facts<'_> {
    let mut facts = Facts::new(&whole.record.totals, unicode);
    facts.begin_ns = whole.record.timeline.begin_ns();
    facts.request = Request::of(&whole.record);
    facts.nodes = {
        let was_killed = facts.request.ended_for_memory;
        whole.nodes.iter().map(|node| NodeUse::of(&node.totals, was_killed)).collect()
    };
    facts.growth = growth::of(&whole.record);
    let demands = whole.nodes.iter().map(|node| Demand::of(&node.totals, Some(&node.timeline)));
    facts.demand =
        demands.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().reduce(Demand::and));
    let both = [balance::of_nodes(whole, unicode), balance::of_tasks(whole, unicode)];
    // What is uneven within nodes is not seen between them.
    facts.balance = both.into_iter().flatten().max_by(|a, b| a.beyond().total_cmp(&b.beyond()));
    facts
}

fn cleaned(texts: &[String], unicode: bool) -> impl Iterator<Item = String> + '_ {
    texts.iter().map(move |text| clean(text, unicode))
}

fn time_bar(row: &shares::Row, facts: &Facts) -> Bar {
    let words = match row.ns {
        None => crate::base::units::UNKNOWN.to_owned(),
        Some(0) => "none".to_owned(),
        Some(ns) => long_duration(ns),
    };
    let share = row.ns.map(|ns| facts.share(ns));
    Bar { name: row.name.trim().to_owned(), tone: row.tone, share, words }
}

/// Shares of less are not worth a bar.
const LEAST_IDLE: f64 = 0.01;

fn gpu_idle(facts: &Facts) -> Vec<Bar> {
    let Some((idle_ns, causes)) = gpu_idle::causes_of_all(facts).filter(|(ns, _)| *ns > 0) else {
        return Vec::new();
    };
    let causes = causes.into_iter().filter(|(share, _)| *share >= LEAST_IDLE);
    let bar = |(share, name): (f64, String)| {
        let words = long_duration((idle_ns as f64 * share) as u64);
        Bar {
            name,
            tone: Tone::Warn,
            share: Some(share),
            words: format!("{} ({words})", percent(share)),
        }
    };
    causes.map(bar).collect()
}
