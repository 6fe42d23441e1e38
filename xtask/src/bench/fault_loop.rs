//! The page-fault workload: maps fresh memory, touches each page once and gives it back, so that
//! nearly all its time is minor faults.

use anyhow::{Context, Result};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ptr;
use std::time::Instant;

/// Prints the mean time per touched page in nanoseconds.
#[derive(clap::Args)]
pub struct Args {
    /// Pages mapped at a time
    #[arg(long, default_value_t = 4096)]
    pages: usize,
    /// How often
    #[arg(long, default_value_t = 150)]
    rounds: u32,
}

/// Runs the loop.
///
/// # Errors
/// When the memory is not to be had.
pub fn run(args: &Args) -> Result<()> {
    let start = Instant::now();
    for _ in 0..args.rounds {
        touch(args.pages).with_context(|| format!("map and touch {} pages", args.pages))?;
    }
    let faults = f64::from(args.rounds) * args.pages as f64;
    println!("{:.1}", start.elapsed().as_nanos() as f64 / faults);
    Ok(())
}

fn touch(pages: usize) -> Result<()> {
    let page_bytes = rustix::param::page_size();
    let bytes = pages * page_bytes;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new private mapping at an address of the kernel's choice overlaps nothing.
    let memory = unsafe { mmap_anonymous(ptr::null_mut(), bytes, protection, MapFlags::PRIVATE) }?;
    // SAFETY: the mapping has `bytes` bytes, is ours alone and ends after the last use of it.
    unsafe {
        // A huge page would be one fault for 512 pages.
        madvise(memory, bytes, Advice::LinuxNoHugepage)?;
        for page in 0..pages {
            memory.cast::<u8>().add(page * page_bytes).write_volatile(1);
        }
        munmap(memory, bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_costs_a_fault() -> Result<()> {
        let faults = || -> Result<i64> {
            // proc(5): the 10th field is minflt; the 2nd may hold blanks but ends with ')'.
            let stat = std::fs::read_to_string("/proc/thread-self/stat")?;
            let fields = stat.rsplit(')').next().unwrap_or_default();
            fields.split_whitespace().nth(7).context("no minflt")?.parse().context("minflt")
        };
        let before = faults()?;
        touch(1000)?;
        assert!(faults()? - before >= 1000);
        Ok(())
    }
}
