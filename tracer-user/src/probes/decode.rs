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

/// The structs of one slot (or cell) over all reads: buckets wrap at 2^32, and their sums over all CPUs
/// with them.
pub struct Unwrapper {
    /// Totals of the fields that are histograms, in their order, as last read.
    totals: Vec<Hist>,
}

impl Unwrapper {
    /// For structs of `measurement` whose values were `last`, where they are among them, when they were
    /// read last; zeros else.
    pub fn after(measurement: &'static Measurement, last: &[Group]) -> Self {
        let last = last.iter().find(|group| group.is(measurement));
        let fields = measurement.fields.iter().enumerate();
        let histograms = fields.filter(|(_, field)| field.kind == Kind::Histogram);
        let total = |(index, _)| match last.map(|group| &group.values[index]) {
            Some(Some(Value::Histogram(hist))) => hist.clone(),
            _ => Hist::default(),
        };
        Self { totals: histograms.map(total).collect() }
    }

    /// Sets the fields of `group` for which `offset` gives a place in the structs `cpus`, one of each
    /// CPU, to the sums over all of them.
    pub fn read(
        &mut self,
        group: &mut Group,
        cpus: &[&[u8]],
        offset: impl Fn(Place) -> Option<usize>,
    ) {
        let mut totals = self.totals.iter_mut();
        for (value, field) in group.values.iter_mut().zip(group.measurement.fields) {
            let total = if field.kind == Kind::Histogram { totals.next() } else { None };
            let Some(at) = offset(field.place) else { continue };
            *value = Some(match total {
                Some(total) => {
                    let buckets = match field.place {
                        Place::CellHist(CellHist { buckets, .. }) => buckets,
                        _ => at + std::mem::offset_of!(KernelHist, buckets),
                    };
                    unwrap(total, cpus, at, buckets);
                    Value::Histogram(total.clone())
                }
                None => Value::Number(sum(cpus, at)),
            });
        }
    }
}

/// Brings `total` up to what the structs `cpus` have: its sum and largest value at `ends`, its buckets at `buckets`.
fn unwrap(total: &mut Hist, cpus: &[&[u8]], ends: usize, buckets: usize) {
    let mut now = [0_u32; BUCKETS];
    for cpu in cpus {
        let bytes = &cpu[buckets..buckets + BUCKETS * 4];
        for (now, bytes) in now.iter_mut().zip(bytes.chunks_exact(4)) {
            let count = bytes.try_into().map_or(0, u32::from_ne_bytes);
            *now = now.wrapping_add(count);
        }
    }
    let max = ends + std::mem::offset_of!(Ends, max);
    let max = cpus.iter().map(|cpu| word(cpu, max)).max().unwrap_or(0);
    total.advance(sum(cpus, ends + std::mem::offset_of!(Ends, sum)), max, &now);
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

/// The bytes of a kernel-side struct.
pub fn bytes_of<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: the kernel-side structs are integers without padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::tables::{SCHED, Sched},
        probes::slot_sum::job_place,
    };
    use tracer_ebpf::tables::job::JobBank;

    #[test]
    fn cpus_add_up_and_buckets_survive_their_wrapping() {
        // SAFETY: all integers.
        let mut bank: JobBank = unsafe { std::mem::zeroed() };
        let mut unwrapper = Unwrapper::after(&SCHED, &[]);
        let mut read = |bank: &JobBank| {
            let mut group = Group::unknown(&SCHED, Vec::new());
            unwrapper.read(&mut group, &[bytes_of(bank), bytes_of(bank)], job_place);
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
}
