//! From the bytes of a kernel-side struct to the values its table names.

use tracer_ebpf::{
    loglinear::{BUCKETS, Ends, KernelHist},
    table::{Kind, Measurement, Place},
};

use crate::model::{
    group::{Group, Value},
    hist::Hist,
};

/// The structs of one slot (or cell) over all reads: buckets wrap at 2^32, and their sums over all CPUs
/// with them.
pub struct Unwrapper {
    /// Totals of each field that is a histogram, as last read.
    totals: Vec<Hist>,
}

impl Unwrapper {
    /// For structs of `measurement` whose values were `last`, where they are among them, when they were
    /// read last; zeros else.
    pub fn after(measurement: &'static Measurement, last: &[Group]) -> Self {
        let last = last.iter().find(|group| std::ptr::eq(group.measurement, measurement));
        let total = |index: usize| match last.map(|group| &group.values[index]) {
            Some(Some(Value::Histogram(hist))) => hist.clone(),
            _ => Hist::default(),
        };
        Self { totals: (0..measurement.fields.len()).map(total).collect() }
    }

    /// Sets the fields of `group` for which `offset` gives a place in the structs `cpus`, one of each
    /// CPU, to the sums over all of them.
    pub fn read(
        &mut self,
        group: &mut Group,
        cpus: &[&[u8]],
        offset: impl Fn(Place) -> Option<usize>,
    ) {
        for (index, field) in group.measurement.fields.iter().enumerate() {
            let Some(at) = offset(field.place) else { continue };
            group.values[index] = Some(match field.kind {
                Kind::Histogram => {
                    let buckets = match field.place {
                        Place::BlockHist { buckets, .. } => buckets,
                        _ => at + std::mem::offset_of!(KernelHist, buckets),
                    };
                    Value::Histogram(self.unwrap(index, cpus, at, buckets))
                }
                _ => Value::Number(sum(cpus, at)),
            });
        }
    }

    /// Of field `index`: its sum and largest value are at `ends`, its buckets at `buckets`.
    fn unwrap(&mut self, index: usize, cpus: &[&[u8]], ends: usize, buckets: usize) -> Hist {
        let total = &mut self.totals[index];
        let mut now = [0_u32; BUCKETS];
        for cpu in cpus {
            let bytes = &cpu[buckets..buckets + BUCKETS * 4];
            for (now, bytes) in now.iter_mut().zip(bytes.chunks_exact(4)) {
                let count = bytes.try_into().map_or(0, u32::from_ne_bytes);
                *now = now.wrapping_add(count);
            }
        }
        for (bucket, now) in now.into_iter().enumerate() {
            // What came since the last read, less than 2^32 in one bucket.
            total.add(bucket, now.wrapping_sub(total.bucket(bucket) as u32).into());
        }
        total.sum = sum(cpus, ends + std::mem::offset_of!(Ends, sum));
        let max = ends + std::mem::offset_of!(Ends, max);
        total.max = cpus.iter().map(|cpu| word(cpu, max)).max().unwrap_or(0);
        total.clone()
    }
}

fn sum(cpus: &[&[u8]], at: usize) -> u64 {
    cpus.iter().map(|cpu| word(cpu, at)).fold(0, u64::wrapping_add)
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
        let mut unwrapper = Unwrapper::after(&SCHED, &[]);
        let mut read = |bank: &JobBank| {
            let mut group = Group::unknown(&SCHED, Vec::new());
            unwrapper.read(&mut group, &[bytes_of(bank), bytes_of(bank)], job_offset);
            group
        };
        bank.on_cpu_ns = 7;
        bank.sleep_ns.sum = 5;
        bank.sleep_ns.max = 3;
        bank.sleep_ns.buckets[9] = 2_000_000_000;
        let first = read(&bank);
        assert_eq!(first.number("on_cpu_ns"), Some(14));
        bank.sleep_ns.buckets[9] = 2_500_000_000; // the two CPUs together: past 2^32
        let second = read(&bank);
        let sleep = second.hist("sleep_ns").unwrap();
        assert_eq!(sleep.count(), 5_000_000_000);
        assert_eq!((sleep.sum, sleep.max), (10, 3));
        assert_eq!(second.since(&first).hist("sleep_ns").unwrap().count(), 1_000_000_000);
    }
}
