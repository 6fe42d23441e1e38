//! Work without GPUs on nodes that have some: how much there was, and in how much of it nobody else was there.
//!
//! Whether a node has GPUs is known by its jobs alone, and perhaps from the last one only. So each job's time is kept, in
//! as few bytes as it needs.

use std::collections::HashMap;

const SECOND_NS: u64 = 1_000_000_000;

/// A job's time on a node, in seconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
struct Stay {
    begin_s: u32,
    end_s: u32,
    /// The job, by a hash: two that share one are taken for one.
    job: u32,
    row: u32,
    /// Core seconds of a job without GPUs; negative: it had some.
    core_s: f32,
}

#[derive(Debug, Default)]
struct Node {
    has_gpu: bool,
    stays: Vec<Stay>,
}

/// All nodes, by name.
#[derive(Debug, Default)]
pub(super) struct Nodes(HashMap<String, Node>);

impl Nodes {
    /// Adds a job on a node: its row, its time, and its core time, `None` if it held a GPU.
    pub fn add(
        &mut self,
        node: &str,
        job: u64,
        row: usize,
        (begin, end): (u64, u64),
        core_ns: Option<u64>,
    ) {
        let seconds = |ns: u64| u32::try_from(ns / SECOND_NS).unwrap_or(u32::MAX);
        let stay = Stay {
            begin_s: seconds(begin),
            end_s: seconds(end.max(begin)),
            job: job as u32,
            row: row as u32,
            core_s: core_ns.map_or(-1.0, |ns| (ns as f64 / SECOND_NS as f64) as f32),
        };
        if !self.0.contains_key(node) {
            self.0.insert(node.to_owned(), Node::default());
        }
        if let Some(of_node) = self.0.get_mut(node) {
            of_node.has_gpu |= core_ns.is_none();
            of_node.stays.push(stay);
        }
    }

    /// Adds others, whose row `at` is `rows[at]` here.
    pub fn merge(&mut self, more: Self, rows: &[usize]) {
        for (name, mut more) in more.0 {
            more.stays.iter_mut().for_each(|stay| stay.row = rows[stay.row as usize] as u32);
            let node = self.0.entry(name).or_default();
            node.has_gpu |= more.has_gpu;
            node.stays.append(&mut more.stays);
        }
    }

    /// Tells of work without GPUs on nodes with some: its row, its time, its core time in nanoseconds, and whether no
    /// other job was on the node.
    pub fn cpu_only(self, mut tell: impl FnMut(usize, (u64, u64), f64, bool)) {
        let mut nodes: Vec<_> = self.0.into_iter().filter(|(_, node)| node.has_gpu).collect();
        // Sums of floats depend on their order.
        nodes.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (_, mut node) in nodes {
            node.stays.sort_by_key(|stay| (stay.begin_s, stay.end_s, stay.job, stay.row));
            each_part(&node.stays, |stay, begin_s, end_s, is_alone| {
                let share = match stay.end_s - stay.begin_s {
                    0 => 1.0,
                    whole => f64::from(end_s - begin_s) / f64::from(whole),
                };
                let span = [begin_s, end_s].map(|s| u64::from(s) * SECOND_NS);
                let core_ns = f64::from(stay.core_s) * SECOND_NS as f64 * share;
                tell(stay.row as usize, (span[0], span[1]), core_ns, is_alone);
            });
        }
    }
}

/// Cuts the times of jobs without GPUs wherever any job comes or goes: each part, and whether one job alone was there.
fn each_part(stays: &[Stay], mut tell: impl FnMut(&Stay, u32, u32, bool)) {
    let mut there: Vec<usize> = Vec::new();
    let mut moments: Vec<(u32, bool, usize)> = Vec::new();
    for (at, stay) in stays.iter().enumerate() {
        if stay.begin_s == stay.end_s {
            // Too short to keep anybody waiting.
            if stay.core_s >= 0.0 {
                tell(stay, stay.begin_s, stay.end_s, true);
            }
            continue;
        }
        // Who goes makes room for who comes.
        moments.extend([(stay.begin_s, true, at), (stay.end_s, false, at)]);
    }
    moments.sort_unstable();
    let mut since_s = 0;
    for (now_s, comes, at) in moments {
        if now_s > since_s {
            let is_alone = there.iter().all(|one| stays[*one].job == stays[there[0]].job);
            for one in there.iter().map(|one| &stays[*one]).filter(|one| one.core_s >= 0.0) {
                tell(one, since_s, now_s, is_alone);
            }
        }
        since_s = now_s;
        match comes {
            true => there.push(at),
            false => there.retain(|one| *one != at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The core seconds of row 0, and those of them alone.
    fn told(nodes: Nodes) -> (f64, f64) {
        let mut told = (0.0, 0.0);
        nodes.cpu_only(|row, _, core_ns, is_alone| {
            assert_eq!(row, 0);
            told.0 += core_ns / SECOND_NS as f64;
            told.1 += if is_alone { core_ns / SECOND_NS as f64 } else { 0.0 };
        });
        told
    }

    fn span(begin_s: u64, end_s: u64) -> (u64, u64) {
        (begin_s * SECOND_NS, end_s * SECOND_NS)
    }

    #[test]
    fn who_is_alone_keeps_nobody_waiting() {
        let core = |s: u64| Some(s * SECOND_NS);
        let add = |stays: &[(u64, (u64, u64), Option<u64>)]| {
            let mut nodes = Nodes::default();
            for (job, span, core_ns) in stays {
                nodes.add("n1", *job, 0, *span, *core_ns);
            }
            nodes
        };
        let cpu = (1, span(100, 200), core(400));
        assert_eq!(told(add(&[cpu])), (0.0, 0.0), "no GPU there");
        assert_eq!(told(add(&[cpu, (2, span(300, 400), None)])), (400.0, 400.0), "one by one");
        assert_eq!(told(add(&[cpu, (2, span(200, 400), None)])), (400.0, 400.0), "and at once");
        assert_eq!(told(add(&[cpu, (2, span(150, 400), None)])), (400.0, 200.0), "half of it");
        assert_eq!(told(add(&[cpu, (2, span(0, 400), None)])), (400.0, 0.0));
        assert_eq!(told(add(&[cpu, (1, span(150, 400), None)])), (400.0, 400.0), "its own step");
        // Two without, at the same time, and the GPU's job later.
        let both = add(&[cpu, (3, span(150, 250), core(100)), (2, span(900, 901), None)]);
        assert_eq!(told(both), (500.0, 250.0));
        let short = add(&[(4, span(5, 5), core(2)), (2, span(0, 9), None)]);
        assert_eq!(told(short), (2.0, 2.0));
    }

    #[test]
    fn merged_is_added() {
        let (mut one, mut other) = (Nodes::default(), Nodes::default());
        one.add("n1", 1, 0, span(0, 10), Some(40 * SECOND_NS));
        other.add("n1", 2, 0, span(5, 10), None);
        other.add("n1", 3, 1, span(0, 5), None);
        one.merge(other, &[0, 7]);
        assert_eq!(told(one), (40.0, 0.0));
    }
}
