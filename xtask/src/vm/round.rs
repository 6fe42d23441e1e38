//! Several boots, some at once, and what each found.

use super::Cgroups;
use super::initramfs::Contents;
use super::kept::Kept;
use super::kernels::Kernel;
use super::machine::{self, Boot};
use super::table::Column;
use crate::process::say;
use anyhow::{Result, bail};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use xtask::guest::Work;

/// How boots are made.
pub struct Round<'a> {
    /// As [`Boot::work`].
    pub work: Work,
    /// As [`Boot::checks`].
    pub checks: &'a [String],
    /// As [`Boot::patience`].
    pub patience: Duration,
    /// How many machines run at a time.
    pub at_once: usize,
    /// Whether more begin after one that failed.
    pub goes_on: bool,
    /// Whether every comparison is printed.
    pub verbose: bool,
    /// Where boots that went well are kept; none of those that check only a part.
    pub kept: Option<Kept>,
    /// Whether those are taken in place of new ones.
    pub resumes: bool,
}

impl Round<'_> {
    /// Makes all boots, so many at once, and tells what each found.
    ///
    /// # Errors
    /// When a machine cannot be started, or a kernel never comes as far as the guest.
    pub fn check_all(
        &self,
        boots: &[(&Kernel, Cgroups)],
        contents: &Contents,
    ) -> Result<Vec<Column>> {
        let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        let done = Mutex::new(Vec::new());
        let work = || -> Result<()> {
            while let Some((kernel, cgroups)) = boots.get(next.fetch_add(1, Ordering::Relaxed)) {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let column = self.check(kernel, *cgroups, contents);
                let failed = column.as_ref().map_or(true, |column| !column.failures().is_empty());
                if failed && !self.goes_on && !stopped.swap(true, Ordering::Relaxed) {
                    say("no more boots begin; --keep-going goes on");
                }
                let column = column?;
                print!("{}", column.findings(self.verbose));
                done.lock().expect("no thread panics with it").push(column);
            }
            Ok(())
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..self.at_once.max(1)).map(|_| scope.spawn(work)).collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a boot panicked")))
        })?;
        let mut columns = done.into_inner().expect("no thread panicked with it");
        columns.sort_by_key(|column: &Column| {
            boots.iter().position(|(kernel, cgroups)| column.is_of(&kernel.name, *cgroups))
        });
        Ok(columns)
    }

    /// Boots one kernel with one version of cgroups and gathers what its guest says.
    fn check(&self, kernel: &Kernel, cgroups: Cgroups, contents: &Contents) -> Result<Column> {
        if let Some(column) =
            self.kept.iter().filter(|_| self.resumes).find_map(|kept| kept.get(kernel, cgroups))
        {
            say(format_args!("{}-{}: went well before", kernel.name, cgroups.name()));
            return Ok(column);
        }
        let begin = Instant::now();
        let (work, checks, patience) = (self.work, self.checks, self.patience);
        let possible_cpus = machine::CPUS;
        let boot = Boot { kernel, cgroups, work, checks, contents, possible_cpus, patience };
        let told = boot.run()?;
        let column = Column::new(&kernel.name, cgroups, told, begin.elapsed().as_secs_f64());
        if let Some(kept) = &self.kept {
            kept.put(kernel, cgroups, &column)?;
        }
        Ok(column)
    }
}
