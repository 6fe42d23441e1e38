//! What threads did to files: as it lies in the map, and, pure and bounded, added up over the readings.

use std::{
    collections::{BTreeMap, HashMap},
    os::fd::AsFd,
};

use anyhow::{Context, Result, bail};
use aya::maps::{Map, MapData, Queue};
use tracer_ebpf::tables::io_task::{TASK_CELLS, TaskCell};

use super::slowest::text;
use crate::{
    bpf::{batch::elements, maps::TakeMap},
    model::io_threads::{IoCounts, IoThreads, ProgramUse, ThreadUse},
};

/// Threads that are kept apart; of those beyond, the half that took less time is in its programs alone.
const MOST_THREADS: usize = 1 << 14;
/// Programs that are kept apart; what others do is told of none.
const MOST_PROGRAMS: usize = 1 << 12;

/// The map, and what was read of it.
pub struct Threads {
    cells: MapData,
    /// Held: the programs are loaded with its descriptor.
    _places: Queue<MapData, u32>,
    pub known: Known,
}

impl Threads {
    /// Of loaded programs, which find all cells to be taken.
    ///
    /// # Errors
    /// When a map is missing, or of another kind.
    pub fn new(take: &mut TakeMap<'_>) -> Result<Self> {
        let Map::Array(cells) = take("TASK_SUMS")? else {
            bail!("map TASK_SUMS is of another kind")
        };
        let mut places: Queue<_, u32> =
            take("TASK_PLACES")?.try_into().context("map TASK_PLACES")?;
        for index in 1..TASK_CELLS {
            places.push(index, 0).context("map TASK_PLACES")?;
        }
        Ok(Self { cells, _places: places, known: Known::default() })
    }

    /// Takes what was done since the last reading.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn read(&mut self) -> Result<()> {
        // SAFETY: the map's own types, integers without padding.
        let read =
            unsafe { elements::<u32, TaskCell>(self.cells.fd().as_fd(), TASK_CELLS as usize) };
        self.known.take(&read.context("cannot read what the job's threads did")?);
        Ok(())
    }
}

/// A thread while it executed one program: its process, its number, its name.
type Thread = (u32, u32, [u8; 16]);

/// All that was read so far.
#[derive(Default)]
pub struct Known {
    /// Each cell as it was read last: one that was taken anew counts from zero.
    seen: HashMap<u32, TaskCell>,
    threads: HashMap<Thread, IoCounts>,
    programs: BTreeMap<[u8; 16], (u64, IoCounts)>,
}

impl Known {
    /// Takes the cells of a reading by their indices.
    pub fn take(&mut self, cells: &[(u32, TaskCell)]) {
        for (index, cell) in cells.iter().filter(|(_, cell)| cell.made_ns != 0) {
            let seen = self.seen.entry(*index).or_default();
            if seen.made_ns != cell.made_ns {
                *seen = TaskCell { made_ns: cell.made_ns, ..whose(cell) };
            }
            // Whose it is comes from when it was met: it may be taken anew while it is read.
            let of = whose(seen);
            let more = counts(cell).since(&counts(seen));
            *seen = TaskCell { made_ns: seen.made_ns, ..sums(cell, &of) };
            if more == IoCounts::default() {
                continue;
            }
            let thread = (of.process, of.thread, of.program);
            let is_new = !self.threads.contains_key(&thread);
            self.threads.entry(thread).or_default().add(&more);
            if self.programs.len() < MOST_PROGRAMS || self.programs.contains_key(&of.program) {
                let (threads, counts) = self.programs.entry(of.program).or_default();
                *threads += u64::from(is_new);
                counts.add(&more);
            }
        }
        if self.threads.len() > MOST_THREADS {
            let mut times: Vec<u64> = self.threads.values().map(|counts| counts.time_ns).collect();
            let (_, least, _) = times.select_nth_unstable(MOST_THREADS / 2);
            let least = *least;
            self.threads.retain(|_, counts| counts.time_ns > least);
        }
    }

    /// The largest of all.
    pub fn largest(&self) -> IoThreads {
        let threads = self.threads.iter().map(|((process, thread, program), counts)| ThreadUse {
            host: String::new(),
            program: text(program),
            process: *process,
            thread: *thread,
            counts: *counts,
        });
        let programs = self.programs.iter().map(|(program, (threads, counts))| ProgramUse {
            program: text(program),
            threads: *threads,
            counts: *counts,
        });
        IoThreads::largest(threads.collect(), programs.collect())
    }
}

/// A cell of the same thread that has counted nothing.
fn whose(cell: &TaskCell) -> TaskCell {
    let TaskCell { thread, process, program, .. } = *cell;
    TaskCell { thread, process, program, ..TaskCell::default() }
}

/// A cell with the sums of `cell`, of the thread that `of` is of.
fn sums(cell: &TaskCell, of: &TaskCell) -> TaskCell {
    TaskCell { thread: of.thread, process: of.process, program: of.program, ..*cell }
}

fn counts(cell: &TaskCell) -> IoCounts {
    IoCounts {
        ops: cell.ops,
        time_ns: cell.time_ns,
        waited_ns: cell.waited_ns,
        metadata_ns: cell.metadata_ns,
        read_bytes: cell.read_bytes,
        written_bytes: cell.written_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(made_ns: u64, thread: u32, program: u8, ops: u64) -> TaskCell {
        let mut name = [0; 16];
        name[0] = program;
        let time_ns = 10 * ops;
        TaskCell { made_ns, thread, process: 1, program: name, ops, time_ns, ..TaskCell::default() }
    }

    fn told(known: &Known) -> Vec<(String, u32, u64)> {
        let threads = known.largest().threads.into_iter();
        let mut all: Vec<_> =
            threads.map(|thread| (thread.program, thread.thread, thread.counts.ops)).collect();
        all.sort();
        all
    }

    #[test]
    fn cells_that_are_taken_anew_count_from_zero() {
        let mut known = Known::default();
        known.take(&[(0, TaskCell::default()), (1, cell(5, 7, b's', 3)), (2, cell(6, 8, b's', 1))]);
        // One goes on, one has executed another program, and the cell of the first is now another's.
        known.take(&[(1, cell(9, 9, b'g', 2)), (2, cell(6, 8, b's', 4)), (3, cell(8, 7, b'g', 5))]);
        // Taken anew under the reader's eyes: not yet of anybody, then with the old time and the new name.
        known.take(&[(1, cell(0, 9, b'x', 0)), (2, cell(6, 3, b'x', 0))]);
        let of = |program: &str, thread, ops| (program.to_owned(), thread, ops);
        assert_eq!(told(&known), [of("g", 7, 5), of("g", 9, 2), of("s", 7, 3), of("s", 8, 4)]);
        let programs = known.largest().programs;
        let told: Vec<_> =
            programs.iter().map(|of| (&*of.program, of.threads, of.counts.ops)).collect();
        assert_eq!(told, [("g", 2, 7), ("s", 2, 7)]);
    }

    #[test]
    fn beyond_the_bound_the_half_that_took_less_time_is_in_its_programs_alone() {
        let mut known = Known::default();
        let all = MOST_THREADS as u32 + 1;
        let cells: Vec<_> =
            (1..=all).map(|at| (at, cell(u64::from(at), at, b'p', u64::from(at)))).collect();
        known.take(&cells);
        assert_eq!(known.threads.len(), MOST_THREADS / 2);
        let told = known.largest();
        assert_eq!(told.threads[0].thread, all);
        let [program] = &told.programs[..] else { panic!("{:?}", told.programs) };
        let ops = u64::from(all) * u64::from(all + 1) / 2;
        assert_eq!((program.threads, program.counts.ops), (all.into(), ops));
    }
}
