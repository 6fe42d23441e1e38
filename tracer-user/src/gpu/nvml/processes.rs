//! What NVML's lists of processes and of samples say of each process. Pure.

use std::collections::BTreeMap;

use nvml_wrapper::struct_wrappers::device::ProcessUtilizationSample;

use super::lists::Listed;
use crate::gpu::reading::Busy;

/// Memory of each process; the parts of one that is on several instances of a device are added.
pub fn by_pid(processes: &[Listed]) -> BTreeMap<u32, Option<u64>> {
    let mut memory: BTreeMap<u32, Option<u64>> = BTreeMap::new();
    for process in processes {
        let known = memory.entry(process.pid).or_default();
        if let Some(bytes) = process.memory_bytes {
            *known = Some(known.unwrap_or(0).saturating_add(bytes));
        }
    }
    memory
}

/// Mean of each process's samples, all of which are new; of all that the driver still has, which are the
/// first, the newest of each.
pub fn shares(mut samples: Vec<ProcessUtilizationSample>, are_first: bool) -> BTreeMap<u32, Busy> {
    samples.sort_by_key(|sample| (sample.pid, sample.timestamp));
    samples.dedup_by_key(|sample| (sample.pid, sample.timestamp));
    let of_one = |samples: &[ProcessUtilizationSample]| {
        let new = if are_first { &samples[samples.len() - 1..] } else { samples };
        let mean = |share: fn(&ProcessUtilizationSample) -> u32| {
            let sum: u64 = new.iter().map(|sample| u64::from(share(sample))).sum();
            sum * 10_000 / new.len() as u64
        };
        let (sm_ppm, memory_ppm) = (mean(|sample| sample.sm_util), mean(|sample| sample.mem_util));
        (samples[0].pid, Busy { sm_ppm, memory_ppm: Some(memory_ppm) })
    };
    samples.chunk_by(|a, b| a.pid == b.pid).map(of_one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(pid: u32, timestamp: u64, sm_util: u32) -> ProcessUtilizationSample {
        ProcessUtilizationSample { pid, timestamp, sm_util, mem_util: 1, enc_util: 0, dec_util: 0 }
    }

    fn sm(samples: Vec<ProcessUtilizationSample>, are_first: bool) -> Vec<(u32, u64)> {
        shares(samples, are_first).into_iter().map(|(pid, busy)| (pid, busy.sm_ppm)).collect()
    }

    #[test]
    fn samples_count_once() {
        let samples = || vec![sample(1, 10, 20), sample(2, 20, 50), sample(1, 20, 60)];
        assert_eq!(sm(samples(), true), [(1, 600_000), (2, 500_000)], "the newest of each");
        assert_eq!(sm(samples(), false), [(1, 400_000), (2, 500_000)], "the mean of what came");
        assert_eq!(sm([samples(), samples()].concat(), false), [(1, 400_000), (2, 500_000)]);
        assert_eq!(sm(Vec::new(), false), []);
    }
}
