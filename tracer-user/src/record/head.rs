//! The head of a record: one line with what a list of jobs and the use of a node need, so that nobody has to read
//! ten thousand records for them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracer_ebpf::handle::{Handle, Histogram, Number};

use super::{
    Record, name,
    words::{Lend, Words},
};
use crate::model::{
    gaps::SCHED,
    info::Facts,
    software::Software,
    tables::{Block, Cpu, Fact, Fault, Gpu, Memory, Net, Own, SELF, Sched, fact},
};

/// What a line is to have at most: texts of a job's are short.
const LONGEST_BYTES: usize = 64 << 10;

/// The struct, what fills it, and its rows for docs/RECORD.md.
macro_rules! head {
    ($($(#[doc = $help:literal])+ $field:ident: $Type:ty = |$record:ident| $value:expr;)*) => {
        /// What the line holds; each where known. Its texts are its own, or those of the file it was read from.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Head<Text = String> {
            $($(#[doc = $help])+ #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$Type>,)*
        }

        /// Name, type and meaning of each field.
        pub static FIELDS: &[(&str, &str, &str)] =
            &[$((stringify!($field), stringify!($Type), concat!($($help),+))),*];

        impl From<&Record> for Head {
            fn from(record: &Record) -> Self {
                type Text = String;
                Self { $($field: (|$record: &Record| -> Option<$Type> { $value })(record),)* }
            }
        }

        impl From<&HeadIn<'_>> for Head {
            fn from(head: &HeadIn) -> Self {
                Self { $($field: head.$field.clone().map(Into::into),)* }
            }
        }

        impl<'a> From<&'a Head> for HeadIn<'a> {
            fn from(head: &'a Head) -> Self {
                Self { $($field: head.$field.as_ref().map(Lend::lend),)* }
            }
        }
    };
}

head! {
    /// The record's file, in the same folder. Of several lines with the same file the last one counts.
    file: Text = |record| Some(name::place(record).file);
    /// Name of the cluster.
    cluster: Text = |record| known(&record.cluster);
    /// The node.
    host: Text = |record| record.hosts.first().cloned();
    /// The job's id.
    job: Text = |record| known(&record.job().job);
    /// The scheduler or runtime whose job it is.
    manager: Text = |record| known(&record.job().manager);
    /// Its owner.
    user: Text = |record| known(&record.job().user);
    /// The step, if steps are series of their own.
    step: Text = |record| known(&record.job().step);
    /// Name of the job.
    name: Text = |record| text(record, const { fact("name") });
    /// Account or project.
    account: Text = |record| text(record, const { fact("account") });
    /// Partition or queue.
    partition: Text = |record| text(record, const { fact("partition") });
    /// Start of the job, nanoseconds since the Unix epoch, as all times here.
    start: u64 = |record| record.facts.number(const { fact("start") });
    /// Its end; absent while it runs.
    end: u64 = |record| record.facts.number(const { fact("end") });
    /// From here it was counted.
    begin: u64 = |record| Some(record.timeline.begin_ns());
    /// Up to here it was counted: when it was last seen, if it has no end.
    seen: u64 = |record| Some(record.timeline.end_ns());
    /// Time for which it was counted.
    elapsed_ns: u64 = |record| Some(record.totals.elapsed_ns);
    /// How long it took, where that is longer: not all of it was counted.
    took_ns: u64 = |record| Some(record.took_ns()).filter(|ns| *ns > record.totals.elapsed_ns);
    /// Part of the time counted in which scheduling was not: time on CPU, waits and sleep.
    uncounted_ns: u64 = |record| Some(record.totals.gaps.of(SCHED)).filter(|ns| *ns > 0);
    /// Why it ended, if that is known.
    end_reason: Text = |record| text(record, const { fact("end_reason") });
    /// Quality of service.
    qos: Text = |record| text(record, const { fact("qos") });
    /// Exit status as a shell shows it.
    exit: u64 = |record| record.facts.number(const { fact("exit") });
    /// Time on CPU, all tasks.
    on_cpu_ns: u64 = |record| sum(record, Sched::on_cpu_ns);
    /// Time of its tasks waiting for a CPU.
    run_queue_wait_ns: u64 = |record| time(record, Sched::run_queue_wait_ns);
    /// Time of its tasks blocked.
    blocked_ns: u64 = |record| time(record, Sched::blocked_ns);
    /// Cores that it may use, in thousandths.
    millicores_held: u64 = |record| sum(record, Cpu::cores_held);
    /// Core time held, used or not.
    core_held_ns: u64 = |record| sum(record, Cpu::held_ns);
    /// Largest memory needed, without file cache: at least this.
    memory_used_peak_bytes: u64 = |record| {
        Some(record.memory_needed()?.least_bytes)
    };
    /// At most this was needed: only where memory came and went between two readings, and nobody knows what it was.
    memory_used_most_bytes: u64 = |record| {
        let needed = record.memory_needed()?;
        (!needed.is_seen()).then_some(needed.most_bytes)
    };
    /// Largest memory charged, page cache included.
    memory_peak_bytes: u64 = |record| sum(record, Memory::peak_bytes);
    /// Its memory limit.
    memory_limit_bytes: u64 = |record| sum(record, Memory::limit_bytes);
    /// Memory held over time, used or not: limit times time, in bytes times seconds.
    memory_held_byte_s: u64 = |record| sum(record, Memory::held_byte_s);
    /// Memory used over time, page cache excluded.
    memory_used_byte_s: u64 = |record| sum(record, Memory::used_byte_s);
    /// Processes that ended with a status other than 0.
    exits_failed: u64 = |record| sum(record, Sched::exits_failed);
    /// Processes that a signal ended.
    exits_killed: u64 = |record| sum(record, Sched::exits_killed);
    /// Processes killed for lack of memory.
    oom_kills: u64 = |record| sum(record, Fault::oom_kills);
    /// What was not counted for a part of the time, as in the record: `block,sched`.
    not_counted: Text = |record| known(&not_counted(record));
    /// Events lost on the node meanwhile, of all causes: some of them may have been the job's.
    lost: u64 = |record| lost(record);
    /// Read from and written to local disks.
    disk_bytes: u64 = |record| block(record);
    /// Sent and received through sockets.
    net_bytes: u64 = |record| add(sum(record, Net::sent_bytes), sum(record, Net::received_bytes));
    /// Time for which GPUs were held, all added up.
    gpu_held_ns: u64 = |record| sum(record, Gpu::held_ns);
    /// Part of it in which a kernel ran on them.
    gpu_busy_ns: u64 = |record| sum(record, Gpu::busy_ns);
    /// The job array that it belongs to.
    array_job: Text = |record| text(record, const { fact("array_job") });
    /// How much is told of its software: `counts`, `names`, `full`, or `opted_out`; absent: nobody watched.
    software: Text = |record| software(record, |of| match of.opted_out {
        true => "opted_out".to_owned(),
        false => of.level.name().to_owned(),
    });
    /// 1: something of it is missing.
    software_partial: u64 = |record| of_software(record, |of| Some(of.is_partial().into()));
    /// Programs, as in `job_software`: names with their versions, at most 8 KiB, then how many have none.
    programs: Text = |record| software(record, Software::programs_text);
    /// Libraries, in the same form, by what they belong to.
    libraries: Text = |record| software(record, Software::libraries_text);
    /// Python packages, by the names that they are installed by.
    packages: Text = |record| software(record, Software::packages_text);
    /// Stacks that these came from.
    stacks: Text = |record| software(record, Software::stacks_text);
    /// Versions of Python.
    python: Text = |record| software(record, Software::python_text);
    /// The most Python processes at once.
    python_processes_most: u64 = |record| of_software(record, |of| of.python_processes_most);
    /// 1: a library was loaded that computes on GPUs.
    gpu_library: u64 = |record| of_software(record, |of| Some(of.gpu_library.into()));
}

impl<Text> Head<Text> {
    /// Core time held while scheduling was counted: what was used of the rest nobody knows.
    pub fn core_counted_ns(&self) -> Option<u64> {
        let (held_ns, elapsed_ns) = (self.core_held_ns?, self.elapsed_ns.unwrap_or(0));
        let counted_ns = elapsed_ns.saturating_sub(self.uncounted_ns.unwrap_or(0));
        let ns = (u128::from(held_ns) * u128::from(counted_ns)).checked_div(elapsed_ns.into());
        Some(ns.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(held_ns))
    }
}

impl Head {
    /// The line, line feed included.
    ///
    /// # Panics
    /// Never: texts and numbers have a form in JSON.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers") + "\n"
    }
}

/// A head whose texts lie in the file that it was read from.
pub type HeadIn<'a> = Head<Words<'a>>;

impl<'a> HeadIn<'a> {
    /// The heads in the text of a file, in the order of their records' files: the last line of each. Gives also the
    /// numbers, from 1 on, of lines that are damaged: one may be torn, where a node died in it.
    pub fn parse(file: &'a [u8]) -> (Vec<Self>, Vec<u64>) {
        let (mut heads, mut damaged) = (Vec::<Self>::new(), Vec::new());
        for (number, line) in (1..).zip(file.split(|byte| *byte == b'\n')) {
            if line.is_empty() {
                continue;
            }
            let head = Some(line).filter(|line| line.len() <= LONGEST_BYTES);
            let head = head.and_then(|line| serde_json::from_slice::<Self>(line).ok());
            match head.filter(|head| head.file.as_deref().is_some_and(name::is_record)) {
                Some(head) => heads.push(head),
                None => damaged.push(number),
            }
        }
        heads.reverse();
        heads.sort_by(|a, b| a.file.cmp(&b.file));
        heads.dedup_by(|a, b| a.file == b.file);
        (heads, damaged)
    }
}

/// The last line of each record's file in the text of a file, as it stands there: fields of later versions included.
pub fn last_lines(file: &[u8]) -> BTreeMap<String, Vec<u8>> {
    /// What is needed of a line here.
    #[derive(Deserialize)]
    struct File {
        file: String,
    }
    let lines = file.split_inclusive(|byte| *byte == b'\n');
    let lines = lines.filter(|line| line.len() <= LONGEST_BYTES && line.ends_with(b"\n"));
    let named = lines.filter_map(|line| {
        let File { file } = serde_json::from_slice(line).ok()?;
        name::is_record(&file).then(|| (file, line.to_vec()))
    });
    named.collect()
}

fn known(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn text(record: &Record, fact: &'static Fact) -> Option<String> {
    let facts: &Facts = &record.facts;
    known(facts.text(fact))
}

/// A text of its software; `None` where nobody watched, or there is none.
fn software(record: &Record, of: impl Fn(&Software) -> String) -> Option<String> {
    record.totals.software.as_ref().map(of).filter(|text| !text.is_empty())
}

/// A number of it, where it did not opt out.
fn of_software(record: &Record, of: impl Fn(&Software) -> Option<u64>) -> Option<u64> {
    of(record.totals.software.as_ref().filter(|software| !software.opted_out)?)
}

fn add(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).reduce(u64::saturating_add)
}

/// The sum over devices or families.
fn sum(record: &Record, field: Handle<Number>) -> Option<u64> {
    let groups = record.totals.stats.groups(field.measurement());
    groups.filter_map(|group| group.number(field)).reduce(u64::saturating_add)
}

fn time(record: &Record, field: Handle<Histogram>) -> Option<u64> {
    Some(record.totals.stats.group(field.measurement())?.hist(field)?.sum)
}

fn block(record: &Record) -> Option<u64> {
    let groups = record.totals.stats.groups(Block::bytes.measurement());
    let groups = groups.filter(|group| matches!(group.tags[1].as_str(), "read" | "write"));
    groups.filter_map(|group| group.number(Block::bytes)).reduce(u64::saturating_add)
}

fn not_counted(record: &Record) -> String {
    let kinds: Vec<_> = record.totals.gaps.iter().map(|gap| gap.what.as_str()).collect();
    kinds.join(",")
}

/// Of what the tracing lost, all that is a count of events.
fn lost(record: &Record) -> Option<u64> {
    const LOST: [Handle<Number>; 8] = [
        Own::bpf_missed,
        Own::dropped_no_bank,
        Own::dropped_task_record,
        Own::dropped_cgroup,
        Own::dropped_slot,
        Own::dropped_block_cell,
        Own::dropped_wait_cell,
        Own::dropped_cgroup_event,
    ];
    let own = record.totals.own.iter().filter(|own| own.is(&SELF));
    let counts = own.flat_map(|own| LOST.map(|field| own.number(field)));
    counts.flatten().reduce(u64::saturating_add).filter(|lost| *lost > 0)
}
