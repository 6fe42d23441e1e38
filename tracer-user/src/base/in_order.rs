//! Work on several things at a time whose results come in the order of the things.

use std::{
    collections::BTreeMap,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc::sync_channel,
    },
    thread,
};

/// Threads at most: a shared file system answers no faster to more.
const MOST_AT_ONCE: usize = 8;

/// Gives `take` what `work` makes of each of `items`, in their order, while as many threads as there are CPUs work on
/// the next ones.
pub fn in_order<I: Sync, R: Send>(
    items: &[I],
    work: impl Fn(&I) -> R + Sync,
    mut take: impl FnMut(R),
) {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let threads = cpus.min(MOST_AT_ONCE).min(items.len());
    if threads < 2 {
        return items.iter().map(work).for_each(take);
    }
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (give, given) = sync_channel(threads);
        for _ in 0..threads {
            let (give, next, work) = (give.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    if give.send((at, work(item))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(give);
        let (mut early, mut due) = (BTreeMap::new(), 0);
        for (at, result) in given {
            early.insert(at, result);
            while let Some(result) = early.remove(&due) {
                take(result);
                due += 1;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whoever_is_done_first() {
        for count in [0, 1, 2, 1000] {
            let items: Vec<u64> = (0..count).collect();
            let mut taken = Vec::new();
            // The even ones take longer.
            let work = |item: &u64| (0..(1 - item % 2) * 1000).fold(*item, |sum, x| sum ^ x ^ x);
            in_order(&items, work, |result| taken.push(result));
            assert_eq!(taken, items);
        }
    }
}
