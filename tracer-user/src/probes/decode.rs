//! From the bytes of a kernel-side struct to the values its table names.

use tracer_ebpf::{
    cells::CellHist,
    loglinear::{BUCKETS, Ends, KernelHist},
    table::{Kind, Measurement, Place},
};

use crate::model::{
    group::{Group, Value},
    hist::Hist,
};

/// The words of one struct, added up over all CPUs at the last read: what did not move since need not
/// be decoded again.
///
/// Counters and buckets only grow, by less than 2^32 between two reads, and no largest value grows
/// without its bucket: equal sums are equal structs.
#[derive(Default)]
pub struct Sums(Vec<u64>);

impl Sums {
    /// Takes the structs `cpus`, one of each CPU, for the last read; whether anything moved. `scratch` is
    /// overwritten.
    pub fn moved(&mut self, cpus: &[&[u8]], scratch: &mut Vec<u64>) -> bool {
        scratch.clear();
        scratch.resize(cpus.first().map_or(0, |cpu| cpu.len() / 8), 0);
        for cpu in cpus {
            for (sum, word) in scratch.iter_mut().zip(cpu.chunks_exact(8)) {
                *sum = sum.wrapping_add(word.try_into().map_or(0, u64::from_ne_bytes));
            }
        }
        let moved = self.0 != *scratch;
        if moved {
            self.0.clone_from(scratch);
        }
        moved
    }
}

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
        let last = last.iter().find(|group| group.is(measurement));
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
                        Place::CellHist(CellHist { buckets, .. }) => buckets,
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
        total.advance(&now);
        total.sum = sum(cpus, ends + std::mem::offset_of!(Ends, sum));
        let max = ends + std::mem::offset_of!(Ends, max);
        total.max = cpus.iter().map(|cpu| word(cpu, max)).max().unwrap_or(0);
        total.clone()
    }
}

fn sum(cpus: &[&[u8]], at: usize) -> u64 {
    cpus.iter().map(|cpu| word(cpu, at)).fold(0, u64::wrapping_add)
}

/// The word at `at`.
pub fn word(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map_or(0, u64::from_ne_bytes)
}

/// Sets the fields that are the count or the sum of a histogram beside them.
pub fn derive(group: &mut Group) {
    let fields = group.measurement.fields;
    for (index, field) in fields.iter().enumerate() {
        let (of, number): (_, fn(&Hist) -> u64) = match field.place {
            Place::CountOf(of) => (of, Hist::count),
            Place::SumOf(of) => (of, |hist| hist.sum),
            _ => continue,
        };
        let of = fields.iter().position(|field| field.place == *of);
        group.values[index] = match of.and_then(|of| group.values[of].as_ref()) {
            Some(Value::Histogram(hist)) => Some(Value::Number(number(hist))),
            _ => None,
        };
    }
}

/// Where in a cell a value is.
pub fn cell_place(place: Place) -> Option<usize> {
    match place {
        Place::Cell(at) | Place::CellHist(CellHist { ends: at, .. }) => Some(at),
        _ => None,
    }
}

/// The bytes of words.
pub fn bytes_of_words(words: &[u64]) -> &[u8] {
    // SAFETY: integers.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// The bytes of a kernel-side struct.
pub fn bytes_of<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: the kernel-side structs are integers without padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tables::{SCHED, Sched};
    use tracer_ebpf::tables::job::JobBank;

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
        assert_eq!(first.number(Sched::on_cpu_ns), Some(14));
        bank.sleep_ns.buckets[9] = 2_500_000_000; // the two CPUs together: past 2^32
        let second = read(&bank);
        let sleep = second.hist(Sched::sleep_ns).unwrap();
        assert_eq!(sleep.count(), 5_000_000_000);
        assert_eq!((sleep.sum, sleep.max), (10, 3));
        assert_eq!(second.since(&first).hist(Sched::sleep_ns).unwrap().count(), 1_000_000_000);
    }

    #[test]
    fn what_moved_on_any_cpu_is_seen() {
        // SAFETY: all integers.
        let mut banks: [JobBank; 2] = unsafe { std::mem::zeroed() };
        let (mut sums, mut scratch) = (Sums::default(), Vec::new());
        let mut moved = |banks: &[JobBank; 2]| {
            sums.moved(&[bytes_of(&banks[0]), bytes_of(&banks[1])], &mut scratch)
        };
        assert!(moved(&banks), "the first read");
        assert!(!moved(&banks));
        banks[1].forks += 1;
        assert!(moved(&banks) && !moved(&banks));
        banks[0].sleep_ns.buckets[1] = u32::MAX; // the upper half of its word
        assert!(moved(&banks) && !moved(&banks));
        banks[0].sleep_ns.buckets[1] = 0; // once around
        assert!(moved(&banks) && !moved(&banks));
        banks[1].sleep_ns.buckets[127] += 1;
        assert!(moved(&banks) && !moved(&banks));
    }
}
