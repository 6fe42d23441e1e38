//! Jobs that lie where a rule begins to speak.

use jobtrace::{
    model::{
        files::FileCounts,
        group::Group,
        hist::Hist,
        tables::{Fact, GPU, Gpu, IO, Io, Memory, SCHED, Sched, fact},
        totals::RunTotals,
    },
    record::{
        Record,
        series::{SERIES, WIDTH},
        timeline::{Column, Timeline},
    },
};
use tracer_ebpf::handle::{Handle, Number};

use super::cases::{Case, changed, number, set};

use crate::{
    fixtures::{self, file_ops},
    reports::{record, slurm},
};

/// Makes the job's wait for a CPU so many percent of the time, all tasks added up.
pub fn waits_for(job: &mut Record, percent: u64) {
    let on_cpu_ns = number(job, Sched::on_cpu_ns);
    let whole_ns = job.totals.elapsed_ns.max(on_cpu_ns * 100 / (100 - percent));
    let waiting = fixtures::hist(&[(whole_ns / 100_000 * percent, 1_000)]);
    for group in job.totals.stats.groups.iter_mut().filter(|group| group.is(&SCHED)) {
        group.set_hist(Sched::run_queue_wait_ns, waiting.clone());
    }
    *job = record(job.totals.clone());
}

pub fn small_gpu() -> Record {
    let mut record = slurm(fixtures::gpus::gpus_held(), 60);
    let mut gpus = 0;
    record.totals.stats.groups.retain(|group| {
        gpus += u32::from(group.is(&GPU));
        !group.is(&GPU) || gpus == 1
    });
    let held_ns = number(&record, Gpu::held_ns);
    set(&mut record, Gpu::busy_ns, held_ns / 10);
    set(&mut record, Gpu::memory_peak_bytes, 4 << 30);
    record
}

/// A GPU that was busy for so many millionths of the time.
pub fn busy_gpu(ratio_ppm: u64) -> Record {
    let mut record = record(fixtures::gpus::starved_gpu());
    for group in record.totals.stats.groups.iter_mut().filter(|group| group.is(&GPU)) {
        let mut readings = Hist::default();
        (0..10).for_each(|_| readings.record(ratio_ppm));
        group.set_hist(Gpu::utilization_ratio, readings);
    }
    record
}

/// The job of many small files, where it moved its data as `change` says.
pub fn moved(rule: &'static str, change: impl Fn(&mut Group)) -> Case {
    changed(rule, record(file_ops::small_files()), |job| {
        let groups = job.totals.stats.groups.iter_mut();
        groups.filter(|group| group.is(&IO) && group.tags[2] == "read").for_each(&change);
    })
}

/// A job whose first file was used as `speaks` says, and then as `silent` does.
pub fn file_changed(
    rule: &'static str,
    speaks: impl Fn(&mut FileCounts),
    silent: impl Fn(&mut FileCounts),
) -> Case {
    let speaking = record(file_ops::with_file(|file| speaks(&mut file.counts)));
    changed(rule, speaking, |job| silent(&mut job.totals.files.files[0].counts))
}

/// A job that waited for reads, so many of a thousand of which did not follow each other.
pub fn read_at_random(thousandths: u64) -> RunTotals {
    let mut totals = file_ops::named();
    let groups = totals.stats.groups.iter_mut();
    for reads in groups.filter(|group| group.is(&IO) && group.tags[2] == "read") {
        let number = reads.number(Io::ops).unwrap();
        reads.set(Io::random, number * thousandths / 1_000);
        reads.set(Io::consecutive, number * (1_000 - thousandths) / 1_000);
    }
    totals
}

/// The job of many small files, of whose reads this is known besides.
pub fn reads_with(numbers: &[(Handle<Number>, u64)]) -> Vec<Record> {
    let mut totals = file_ops::small_files();
    let groups = totals.stats.groups.iter_mut();
    for reads in
        groups.filter(|group| group.is(&IO) && group.tags[..] == ["lustre", "/scratch", "read"])
    {
        numbers.iter().for_each(|(field, number)| reads.set(*field, *number));
    }
    vec![record(totals)]
}

/// The same with reads past the cache, so many of which follow the one before.
pub fn direct_reads(consecutive: u64) -> Vec<Record> {
    reads_with(&[
        (Io::fetched_bytes, 0),
        (Io::device_read_bytes, 300 * MIB),
        (Io::consecutive, consecutive),
        (Io::random, 156_000 - consecutive),
    ])
}

pub const LIMIT: &Fact = fact("time_limit_end");
pub const START: &Fact = fact("start");
pub const MEMORY_ASKED: &Fact = fact("memory_per_node_bytes");
pub const MS: u64 = 1_000_000;
pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;

/// A job that was charged so many percent of its limit, and needed so many of them without file cache.
pub fn at_memory_limit(totals: RunTotals, charged: u64, needed: u64) -> Record {
    let mut job = slurm(totals, 60);
    let limit = number(&job, Memory::limit_bytes);
    set(&mut job, Memory::peak_bytes, limit / 100 * charged + 100);
    set(&mut job, Memory::used_peak_bytes, limit / 100 * needed + 100);
    set(&mut job, Memory::cache_peak_bytes, limit / 100 * charged.saturating_sub(needed));
    job
}

/// A job whose memory took this course, in MiB.
pub fn remembers(course: impl Fn(u64) -> u64) -> Record {
    let mut job = record(fixtures::cpu_bound());
    let at = SERIES.iter().position(|series| series.name == "memory_bytes").unwrap();
    let column = |second| {
        let mut column: Column = [None; WIDTH];
        column[at] = Some(course(second) << 20);
        column
    };
    let columns: Vec<Column> = (0..20).map(column).collect();
    let begin_ns = job.timeline.begin_ns();
    let end_ns = begin_ns + 20_000 * MS;
    job.timeline = Timeline::of(begin_ns, end_ns, 1_000 * MS, &columns).unwrap();
    job
}

/// A file with a thousand writes of one thread alone, 1 ms each, and 8,500 of several that took so many microseconds.
pub fn shared_writes(shared_us: u64) -> FileCounts {
    let shared_ns = shared_us * 1_000;
    FileCounts {
        ops: 9_500,
        writes: 9_500,
        written_bytes: 9_500 << 12,
        time_ns: 1_000 * MS + shared_ns,
        write_ns: 1_000 * MS + shared_ns,
        shared_writes: 8_500,
        shared_written_bytes: 8_500 << 12,
        shared_write_ns: shared_ns,
        ..FileCounts::default()
    }
}

/// Two threads on files, of which the slower one takes 40 s, and the other one so many milliseconds beyond 24 s: 15 % of
/// its time less, or not.
pub fn uneven_io(other_ms: u64) -> Vec<Record> {
    let mut totals = file_ops::named();
    let threads = &mut totals.files.threads.threads;
    threads[0].counts.time_ns = 40_000 * MS;
    threads[1].counts.time_ns = (24_000 + other_ms) * MS;
    vec![record(totals)]
}

/// An operation has not returned for a quarter of the time.
pub fn hanging() -> Record {
    let mut job = record(file_ops::named());
    let quarter_ns = job.totals.elapsed_ns.div_ceil(4);
    let slowest = &mut job.totals.files.slowest[0];
    (slowest.under_way, slowest.took_ns) = (true, quarter_ns);
    job
}
