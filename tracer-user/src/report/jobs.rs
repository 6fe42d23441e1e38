//! Jobs side by side: a row for each run, of its heads alone.

use serde::Serialize;

use super::text::hours_shown;
use crate::{
    base::{
        text::{clean, truncate},
        units::{UNKNOWN, bytes, duration, percent},
    },
    record::{head::Head, select::Run},
    report::moment,
    view::{
        Style,
        line::{Line, Tone},
        rules::CORES_OF_A_GPU,
    },
};

/// A run of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// The job's id; texts are empty where unknown.
    pub job: String,
    /// Its scheduler.
    pub manager: String,
    /// Its owner.
    pub user: String,
    /// Account or project.
    pub account: String,
    /// Partition or queue.
    pub partition: String,
    /// Its name.
    pub name: String,
    /// `running`, `ended`, `succeeded`, `failed`, `out_of_memory`, `time_limit`.
    pub state: &'static str,
    /// Nodes that there are records of.
    pub nodes: u64,
    /// Start, nanoseconds since the Unix epoch.
    pub start: u64,
    /// End, or when it was last seen.
    pub end: u64,
    /// The longest of its nodes' times.
    pub elapsed_ns: u64,
    /// Time on CPU of all tasks.
    pub on_cpu_ns: Option<u64>,
    /// Time of its tasks waiting for a CPU.
    pub run_queue_wait_ns: Option<u64>,
    /// Time of its tasks blocked.
    pub blocked_ns: Option<u64>,
    /// Cores that it may use on all nodes, in thousandths.
    pub millicores_held: Option<u64>,
    /// Core time held.
    pub core_held_ns: Option<u64>,
    /// Memory needed on the fullest node.
    pub memory_used_peak_bytes: Option<u64>,
    /// The largest limit of a node.
    pub memory_limit_bytes: Option<u64>,
    /// GPU time held.
    pub gpu_held_ns: Option<u64>,
    /// GPU time in which a kernel ran.
    pub gpu_busy_ns: Option<u64>,
    /// Read from and written to local disks.
    pub disk_bytes: Option<u64>,
    /// Sent and received.
    pub net_bytes: Option<u64>,
    /// Core time held and not used, a GPU counting as 16 cores.
    pub wasted_core_ns: u64,
    /// Files of its records.
    pub files: Vec<String>,
}

impl From<&Run> for Row {
    fn from(run: &Run) -> Self {
        let heads = || run.parts.iter().map(|(_, head)| head);
        let text = |of: fn(&Head) -> &Option<String>| {
            heads().find_map(|head| of(head).clone()).unwrap_or_default()
        };
        let sum = |of: fn(&Head) -> Option<u64>| heads().filter_map(of).reduce(u64::saturating_add);
        let most = |of: fn(&Head) -> Option<u64>| heads().filter_map(of).max();
        let mut nodes: Vec<_> = heads().map(|head| &head.host).collect();
        nodes.sort();
        nodes.dedup();
        // The parts on one node follow each other, nodes are beside each other.
        let of_node = |node: &Option<String>| {
            let parts = heads().filter(|head| head.host == *node);
            parts.filter_map(|head| head.elapsed_ns).fold(0, u64::saturating_add)
        };
        let (on_cpu_ns, core_held_ns) = (sum(|head| head.on_cpu_ns), sum(|head| head.core_held_ns));
        let (gpu_held_ns, gpu_busy_ns) =
            (sum(|head| head.gpu_held_ns), sum(|head| head.gpu_busy_ns));
        let rest = |held: Option<u64>, used: Option<u64>| {
            held.zip(used).map_or(0, |(held, used)| held.saturating_sub(used))
        };
        let gpu_rest = rest(gpu_held_ns, gpu_busy_ns).saturating_mul(CORES_OF_A_GPU);
        Self {
            job: text(|head| &head.job),
            manager: text(|head| &head.manager),
            user: text(|head| &head.user),
            account: text(|head| &head.account),
            partition: text(|head| &head.partition),
            name: text(|head| &head.name),
            state: state(run),
            nodes: nodes.len() as u64,
            start: heads().filter_map(|head| head.start).min().unwrap_or(run.begin_ns()),
            end: most(|head| head.end).unwrap_or(run.seen_ns()),
            elapsed_ns: nodes.iter().map(|node| of_node(node)).max().unwrap_or(0),
            on_cpu_ns,
            run_queue_wait_ns: sum(|head| head.run_queue_wait_ns),
            blocked_ns: sum(|head| head.blocked_ns),
            millicores_held: nodes
                .iter()
                .filter_map(|node| {
                    let parts = heads().filter(|head| head.host == **node);
                    parts.filter_map(|head| head.millicores_held).max()
                })
                .reduce(u64::saturating_add),
            core_held_ns,
            memory_used_peak_bytes: most(|head| head.memory_used_peak_bytes),
            memory_limit_bytes: most(|head| head.memory_limit_bytes),
            gpu_held_ns,
            gpu_busy_ns,
            disk_bytes: sum(|head| head.disk_bytes),
            net_bytes: sum(|head| head.net_bytes),
            wasted_core_ns: rest(core_held_ns, on_cpu_ns).saturating_add(gpu_rest),
            files: run.files().iter().map(|file| file.display().to_string()).collect(),
        }
    }
}

fn state(run: &Run) -> &'static str {
    let heads = || run.parts.iter().map(|(_, head)| head);
    let exit = heads().filter_map(|head| head.exit).max();
    let reason = |reason| heads().any(|head| head.end_reason.as_deref() == Some(reason));
    match exit {
        _ if reason("out_of_memory") => "out_of_memory",
        _ if reason("time_limit") => "time_limit",
        Some(0) => "succeeded",
        Some(_) if heads().any(|head| head.oom_kills.is_some_and(|kills| kills > 0)) => {
            "out_of_memory"
        }
        Some(_) => "failed",
        None if has_ended(run) => "ended",
        None => "running",
    }
}

/// Whether its last part on each node has an end: an agent that was started anew has left one without.
fn has_ended(run: &Run) -> bool {
    let heads = || run.parts.iter().map(|(_, head)| head);
    heads().all(|head| {
        let of_node = heads().filter(|other| other.host == head.host);
        of_node.max_by_key(|part| part.begin).is_some_and(|last| last.end.is_some())
    })
}

/// A column of the CSV.
type Column = (&'static str, fn(&Row) -> String);

fn number(number: Option<u64>) -> String {
    number.map_or(String::new(), |number| number.to_string())
}

/// All columns; what is unknown is empty.
static COLUMNS: [Column; 23] = [
    ("job", |row| row.job.clone()),
    ("manager", |row| row.manager.clone()),
    ("user", |row| row.user.clone()),
    ("account", |row| row.account.clone()),
    ("partition", |row| row.partition.clone()),
    ("name", |row| row.name.clone()),
    ("state", |row| row.state.to_owned()),
    ("nodes", |row| row.nodes.to_string()),
    ("start", |row| row.start.to_string()),
    ("end", |row| row.end.to_string()),
    ("elapsed_ns", |row| row.elapsed_ns.to_string()),
    ("on_cpu_ns", |row| number(row.on_cpu_ns)),
    ("run_queue_wait_ns", |row| number(row.run_queue_wait_ns)),
    ("blocked_ns", |row| number(row.blocked_ns)),
    ("millicores_held", |row| number(row.millicores_held)),
    ("core_held_ns", |row| number(row.core_held_ns)),
    ("memory_used_peak_bytes", |row| number(row.memory_used_peak_bytes)),
    ("memory_limit_bytes", |row| number(row.memory_limit_bytes)),
    ("gpu_held_ns", |row| number(row.gpu_held_ns)),
    ("gpu_busy_ns", |row| number(row.gpu_busy_ns)),
    ("disk_bytes", |row| number(row.disk_bytes)),
    ("net_bytes", |row| number(row.net_bytes)),
    ("wasted_core_ns", |row| row.wasted_core_ns.to_string()),
];

/// The rows as CSV (RFC 4180), with a line of names.
pub fn csv(rows: &[Row]) -> String {
    let head: Vec<_> = COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let cells = |row: &Row| COLUMNS.iter().map(|(_, of)| of(row)).collect::<Vec<_>>();
    let lines = std::iter::once(head).chain(rows.iter().map(cells));
    lines.map(|cells| csv_line(&cells)).collect()
}

/// A line of CSV, line feed included. A text that a spreadsheet would compute is made one that it does not, and none
/// tells a terminal what to do.
pub(super) fn csv_line(cells: &[String]) -> String {
    let cell = |cell: &String| {
        let is_order = |c: char| c.is_control() && c != '\n';
        let cell = cell.replace(is_order, "?");
        let is_formula = cell.starts_with(['=', '+', '-', '@']);
        let text = if is_formula { format!("'{cell}") } else { cell };
        if text.contains([',', '"', '\n']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text
        }
    };
    cells.iter().map(cell).collect::<Vec<_>>().join(",") + "\n"
}

/// Room for a name on a terminal.
const NAME_COLUMNS: usize = 40;

/// The rows for a terminal.
pub fn table(rows: &[Row], style: &Style) -> String {
    let head = [
        "JOB",
        "USER",
        "STATE",
        "START (UTC)",
        "TOOK",
        "NODES",
        "CORES",
        "MEMORY",
        "GPUS",
        "IDLE CORE H",
        "NAME",
    ];
    let share = |used: Option<u64>, held: Option<u64>| match used.zip(held.filter(|held| *held > 0))
    {
        Some((used, held)) => percent(used as f64 / held as f64),
        None => UNKNOWN.to_owned(),
    };
    let cells = |row: &Row| {
        let gpus = match row.gpu_held_ns.filter(|ns| *ns > 0) {
            Some(held) => share(row.gpu_busy_ns, Some(held)),
            None => String::new(),
        };
        vec![
            clean(&row.job, style.unicode),
            clean(&row.user, style.unicode),
            row.state.replace('_', " "),
            moment(row.start)[..16].to_owned(),
            duration(row.elapsed_ns),
            row.nodes.to_string(),
            share(row.on_cpu_ns, row.core_held_ns),
            row.memory_used_peak_bytes.map_or(UNKNOWN.to_owned(), bytes),
            gpus,
            hours_shown(row.wasted_core_ns as f64 / 3.6e12),
            truncate(&clean(&row.name, style.unicode), NAME_COLUMNS),
        ]
    };
    let rows: Vec<_> = rows.iter().map(cells).collect();
    columns(&head, &rows, &[4, 5, 6, 7, 8, 9], style)
}

/// A table for a terminal; the columns at `right` are numbers. As wide as it is: a pipe has no width.
pub(super) fn columns(
    head: &[&str],
    rows: &[Vec<String>],
    right: &[usize],
    style: &Style,
) -> String {
    use crate::base::text;
    let cells =
        |at: usize| rows.iter().map(move |row| text::width(&row[at])).chain([head[at].len()]);
    let widths: Vec<usize> = (0..head.len()).map(|at| cells(at).max().unwrap_or(0)).collect();
    let style = Style { width: usize::MAX, ..*style };
    let line = |row: &[String], tone| {
        let cell = |(at, cell): (usize, &String)| match right.contains(&at) {
            true => text::right(cell, widths[at]),
            false => text::left(cell, widths[at]),
        };
        let cells: Vec<_> = row.iter().enumerate().map(cell).collect();
        Line::new().with(tone, cells.join("  ")).render(&style) + "\n"
    };
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rows = rows.iter().map(|row| line(row, Tone::Plain));
    std::iter::once(line(&head, Tone::Faint)).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn head(host: &str, elapsed_ns: u64) -> (PathBuf, Head) {
        let head = Head {
            job: Some("7".into()),
            host: Some(host.into()),
            elapsed_ns: Some(elapsed_ns),
            core_held_ns: Some(8 * elapsed_ns),
            on_cpu_ns: Some(2 * elapsed_ns),
            memory_used_peak_bytes: Some(elapsed_ns),
            start: Some(5),
            end: Some(9),
            ..Head::default()
        };
        (PathBuf::new(), head)
    }

    #[test]
    fn parts_follow_each_other_on_a_node_and_nodes_are_beside_each_other() {
        let run = Run { parts: vec![head("n1", 10), head("n1", 5), head("n2", 12)] };
        let row = Row::from(&run);
        assert_eq!((row.nodes, row.elapsed_ns, row.state), (2, 15, "ended"));
        assert_eq!((row.core_held_ns, row.on_cpu_ns), (Some(8 * 27), Some(2 * 27)));
        assert_eq!((row.wasted_core_ns, row.memory_used_peak_bytes), (6 * 27, Some(12)));
    }

    #[test]
    fn a_part_that_another_follows_needs_no_end() {
        let part = |begin, end| {
            let (folder, known) = head("n1", 10);
            (folder, Head { begin: Some(begin), end, ..known })
        };
        let state_of = |parts| Row::from(&Run { parts }).state;
        assert_eq!(state_of(vec![part(5, None), part(7, Some(9))]), "ended");
        assert_eq!(state_of(vec![part(7, Some(9)), part(5, None)]), "ended");
        assert_eq!(state_of(vec![part(5, Some(6)), part(7, None)]), "running");
        assert_eq!(state_of(vec![part(5, None), part(7, Some(9)), head("n2", 1)]), "ended");
    }

    #[test]
    fn states() {
        let of = |change: fn(&mut Head)| {
            let mut part = head("n1", 10);
            change(&mut part.1);
            Row::from(&Run { parts: vec![part, head("n2", 10)] }).state
        };
        assert_eq!(of(|_| ()), "ended");
        assert_eq!(of(|head| head.end = None), "running");
        assert_eq!(of(|head| head.exit = Some(0)), "succeeded");
        assert_eq!(of(|head| head.exit = Some(3)), "failed");
        assert_eq!(of(|head| (head.exit, head.oom_kills) = (Some(137), Some(1))), "out_of_memory");
        assert_eq!(of(|head| head.end_reason = Some("time_limit".into())), "time_limit");
    }

    #[test]
    fn csv_is_read_back_as_it_was_and_computes_nothing() {
        let cells = ["a,b", "say \"x\"", "two\nlines", "=1+1", "\x1b[2Jplain\r", ""];
        let cells = cells.map(str::to_owned);
        let expected = "\"a,b\",\"say \"\"x\"\"\",\"two\nlines\",'=1+1,?[2Jplain?,\n";
        assert_eq!(csv_line(&cells), expected);
        let text = csv(&[Row::default()]);
        let (head, row) = text.split_once('\n').unwrap();
        assert_eq!(head.matches(',').count(), row.matches(',').count());
    }
}
