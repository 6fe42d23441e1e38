//! From the bytes of a kernel-side struct to the values its table names.

use tracer_ebpf::{
    loglinear::{BUCKETS, Ends, KernelHist},
    table::{Field, Kind, Place},
};

use crate::model::{
    group::{Group, Value},
    hist::Hist,
};

/// A histogram of the kernel's, added up over all reads: its buckets wrap at 2^32.
#[derive(Clone)]
struct Unwrapped {
    last: [u32; BUCKETS],
    total: Hist,
}

/// The struct of one CPU (or the shared one) as last read, with what wrapped counters add up to.
pub struct Unwrapper {
    hists: Vec<Option<Box<Unwrapped>>>,
}

impl Unwrapper {
    /// For a struct that began with zeros, described by `fields`.
    pub fn new(fields: &[Field]) -> Self {
        Self { hists: vec![None; fields.len()] }
    }

    /// Adds the values of the struct `bytes` to `group`: those fields of its table for which `offset`
    /// gives a place in it.
    pub fn add_to(
        &mut self,
        group: &mut Group,
        bytes: &[u8],
        offset: impl Fn(Place) -> Option<usize>,
    ) {
        for (index, field) in group.measurement.fields.iter().enumerate() {
            let Some(at) = offset(field.place) else { continue };
            let value = match field.kind {
                Kind::Histogram => {
                    let buckets = match field.place {
                        Place::BlockHist { buckets, .. } => buckets,
                        _ => at + std::mem::offset_of!(KernelHist, buckets),
                    };
                    Value::Histogram(self.unwrap(index, &bytes[at..], &bytes[buckets..]))
                }
                _ => Value::Number(word(bytes, at)),
            };
            match (&mut group.values[index], value) {
                (Some(Value::Number(sum)), Value::Number(more)) => *sum += more,
                (Some(Value::Histogram(sum)), Value::Histogram(more)) => sum.merge(&more),
                (unknown, value) => *unknown = Some(value),
            }
        }
    }

    /// Of field `index`: its sum and largest value begin at `ends`.
    fn unwrap(&mut self, index: usize, ends: &[u8], buckets: &[u8]) -> Hist {
        let fresh = || Box::new(Unwrapped { last: [0; BUCKETS], total: Hist::default() });
        let state = self.hists[index].get_or_insert_with(fresh);
        for bucket in 0..BUCKETS {
            let at = bucket * size_of::<u32>();
            let now = buckets[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
            state.total.add(bucket, now.wrapping_sub(state.last[bucket]).into());
            state.last[bucket] = now;
        }
        state.total.sum = word(ends, std::mem::offset_of!(Ends, sum));
        state.total.max = word(ends, std::mem::offset_of!(Ends, max));
        state.total.clone()
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map_or(0, u64::from_ne_bytes)
}

/// Sets the fields that are the count or the sum of a histogram beside them.
pub fn derive(group: &mut Group) {
    for field in group.measurement.fields {
        match field.place {
            Place::CountOf(hist) => group.set(field.name, group.hist(hist).map(Hist::count)),
            Place::SumOf(hist) => group.set(field.name, group.hist(hist).map(|hist| hist.sum)),
            _ => {}
        }
    }
}

/// The bytes of a kernel-side struct.
pub fn bytes_of<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: the kernel-side structs are integers without padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tables::SCHED;
    use tracer_ebpf::job::JobBank;

    fn job_offset(place: Place) -> Option<usize> {
        if let Place::Job(at) = place { Some(at) } else { None }
    }

    #[test]
    fn cpus_add_up_and_buckets_survive_their_wrapping() {
        // SAFETY: all integers.
        let mut bank: JobBank = unsafe { std::mem::zeroed() };
        let mut cpus = [Unwrapper::new(SCHED.fields), Unwrapper::new(SCHED.fields)];
        let mut read = |bank: &JobBank| {
            let mut group = Group::unknown(&SCHED, Vec::new());
            for cpu in &mut cpus {
                cpu.add_to(&mut group, bytes_of(bank), job_offset);
            }
            group
        };
        bank.on_cpu_ns = 7;
        bank.sleep_ns.sum = 5;
        bank.sleep_ns.max = 3;
        bank.sleep_ns.buckets[9] = u32::MAX;
        let first = read(&bank);
        assert_eq!(first.number("on_cpu_ns"), Some(14));
        bank.sleep_ns.buckets[9] = 4; // 5 more
        let second = read(&bank);
        let sleep = second.hist("sleep_ns").unwrap();
        assert_eq!(sleep.count(), 2 * (u64::from(u32::MAX) + 5));
        assert_eq!((sleep.sum, sleep.max), (10, 3));
        assert_eq!(second.since(&first).hist("sleep_ns").unwrap().count(), 10);
    }
}
