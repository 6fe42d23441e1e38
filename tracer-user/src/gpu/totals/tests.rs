//! Readings as a driver could give them, and what comes of them.

use std::sync::Arc;

use super::*;
use crate::{
    gpu::claim::{Claim, Claims},
    model::{
        hist::Hist,
        tables::{Gpu, SCHED, Sched},
    },
};

const S: u64 = 1_000_000_000;

fn process(pid: u32, memory: u64, sm_percent: Option<u64>) -> ProcessReading {
    let busy = sm_percent.map(|percent| Busy { sm_ppm: percent * 10_000, memory_ppm: Some(0) });
    ProcessReading { pid, memory_bytes: Some(memory), busy, ..ProcessReading::default() }
}

/// A device that has used so much energy; its utilisation is 90 %.
fn device(energy: Option<u64>, processes: &[ProcessReading]) -> DeviceReading {
    let device = Device { uuid: "GPU-a".into(), ..Device::default() };
    DeviceReading {
        device: Arc::new(device),
        busy: Some(Busy { sm_ppm: 900_000, memory_ppm: Some(100_000) }),
        memory_used_bytes: Some(1_000),
        power_milliwatts: Some(200_000),
        energy_millijoules: energy,
        processes: processes.to_vec(),
        ..DeviceReading::default()
    }
}

/// Pids from 10 are job 1's, from 20 job 2's, …; below nobody's.
fn add(totals: &mut Totals<u32>, at_s: u64, device: DeviceReading) {
    let reading = GpuReading { monotonic_ns: at_s * S, devices: vec![device] };
    totals.add(&reading, |process| Some(process.pid / 10).filter(|job| *job > 0));
}

fn group(totals: &Totals<u32>, job: u32, at_s: u64) -> Group {
    totals.groups_for(&job, at_s * S).pop().expect("the job was on the device")
}

fn energy(totals: &Totals<u32>, job: u32) -> Option<u64> {
    group(totals, job, 0).number(Gpu::energy_joules)
}

#[test]
fn energy_is_that_of_the_time_on_the_device() {
    let (none, own): (&[_], &[_]) = (&[], &[process(10, 0, None)]);
    let mut totals = Totals::default();
    add(&mut totals, 1, device(Some(1_000), none));
    add(&mut totals, 2, device(Some(1_100), own));
    assert_eq!(energy(&totals, 1), Some(100), "it came in this second");
    add(&mut totals, 3, device(Some(1_300), own));
    add(&mut totals, 4, device(Some(9_999), none));
    assert_eq!(energy(&totals, 1), Some(300), "it left in this one");
    add(&mut totals, 60, device(Some(50_000), own));
    assert_eq!(energy(&totals, 1), Some(300), "nobody knows when it came back");
    add(&mut totals, 120, device(Some(50_700), own));
    assert_eq!(energy(&totals, 1), Some(1_000), "it was there before and after the gap");
    add(&mut totals, 121, device(Some(5), own));
    assert_eq!(energy(&totals, 1), Some(1_000), "the driver was loaded anew");
    add(&mut totals, 122, device(Some(25), own));
    assert_eq!(energy(&totals, 1), Some(1_020));
    add(&mut totals, 123, device(None, own));
    add(&mut totals, 124, device(Some(100), own));
    assert_eq!(energy(&totals, 1), Some(1_020), "not told for a moment");
}

#[test]
fn a_device_without_a_counter_has_no_energy() {
    let mut totals = Totals::default();
    add(&mut totals, 1, device(None, &[process(10, 0, None)]));
    add(&mut totals, 2, device(None, &[process(10, 0, None)]));
    assert_eq!(energy(&totals, 1), None);
}

#[test]
fn alone_it_is_the_devices_shared_the_jobs_own() {
    let mut totals = Totals::default();
    let sm = |totals: &Totals<u32>, job| {
        let hist = group(totals, job, 1).hist(Gpu::utilization_ratio).cloned();
        hist.map(|hist| (hist.count(), hist.sum))
    };
    add(&mut totals, 1, device(None, &[process(10, 5, Some(20)), process(11, 6, Some(90))]));
    assert_eq!(sm(&totals, 1), Some((1, 900_000)));
    let shared = [process(10, 5, Some(20)), process(11, 6, Some(90)), process(20, 7, Some(30))];
    add(&mut totals, 2, device(None, &shared));
    assert_eq!(sm(&totals, 1), Some((2, 900_000 + 1_000_000)), "no more than all");
    assert_eq!(sm(&totals, 2), Some((1, 300_000)));
    let known_of_one = [process(10, 5, Some(20)), process(11, 6, None), process(20, 7, Some(30))];
    add(&mut totals, 3, device(None, &known_of_one));
    assert_eq!(sm(&totals, 1), Some((2, 1_900_000)), "a part of it would mislead");
    assert_eq!(sm(&totals, 2), Some((2, 600_000)));
    assert_eq!(group(&totals, 1, 3).number(Gpu::memory_used_bytes), Some(11));
    assert_eq!(group(&totals, 1, 3).number(Gpu::readings_shared), Some(2));
}

#[test]
fn a_state_ends_with_the_job_or_with_the_answers() {
    let mut totals = Totals::default();
    add(&mut totals, 1, device(None, &[process(10, 5, None)]));
    assert_eq!(group(&totals, 1, 6).number(Gpu::memory_used_bytes), Some(5));
    assert_eq!(group(&totals, 1, 7).number(Gpu::memory_used_bytes), None, "no answer since");
    add(&mut totals, 7, device(None, &[]));
    assert_eq!(group(&totals, 1, 7).number(Gpu::processes), None, "it left");
    assert_eq!(group(&totals, 1, 7).number(Gpu::memory_peak_bytes), Some(5));
}

#[test]
fn intervals_add_up_to_the_whole() {
    let mut totals = Totals::default();
    let mut sum: Option<Group> = None;
    let mut before = None;
    for at in 1..=20 {
        let there = at % 7 != 0;
        let own = [process(10, at, Some(at))];
        add(&mut totals, at, device(Some(at * 300), if there { &own } else { &[] }));
        let now = group(&totals, 1, at);
        let interval = before.as_ref().map_or(now.clone(), |before| now.since(before));
        assert_eq!(interval.is_idle(), !there, "{at}");
        match &mut sum {
            Some(sum) => sum.follow(&interval),
            None => sum = Some(interval),
        }
        before = Some(now);
    }
    let (sum, whole) = (sum.unwrap(), before.unwrap());
    for field in [Gpu::power_watts, Gpu::utilization_ratio] {
        assert_eq!(sum.hist(field), whole.hist(field), "{field:?}");
    }
    for field in [Gpu::energy_joules, Gpu::memory_peak_bytes, Gpu::readings_shared] {
        assert_eq!(sum.number(field), whole.number(field), "{field:?}");
    }
}

#[test]
fn notes_are_said_once_and_to_whom_they_concern() {
    let mut totals = Totals::default();
    add(&mut totals, 1, device(None, &[process(10, 5, None)]));
    for _ in 0..2 {
        totals.note(Some("GPU-a"), "a".into());
        totals.note(Some("GPU-b"), "b".into());
        totals.note(None, "all".into());
    }
    assert_eq!(totals.notes_for(&1), ["a", "all"]);
    assert_eq!(totals.notes_for(&2), ["all"]);
    assert_eq!(Vec::from_iter(totals.notes()), ["a", "b", "all"]);
    totals.forget(&1);
    assert_eq!(totals.groups_for(&1, S), []);
}

/// What a job's tasks have done so far: blocked for so many reads of a millisecond.
fn looked(reads: u64) -> Vec<Group> {
    let mut sched = Group::unknown(&SCHED, Vec::new());
    let mut blocked = Hist::default();
    (0..reads).for_each(|_| blocked.record(1_000_000));
    sched.set(Sched::on_cpu_ns, 0);
    sched.set_hist(Sched::run_queue_wait_ns, Hist::default());
    sched.set_hist(Sched::blocked_ns, blocked);
    vec![sched]
}

fn idle(group: &Group) -> [Option<u64>; 4] {
    let fields = [Gpu::busy_ns, Gpu::idle_ns, Gpu::idle_while_blocked_ns, Gpu::idle_other_ns];
    fields.map(|field| group.number(field).map(|ns| (ns + 500_000) / 1_000_000))
}

#[test]
fn idle_time_lies_beside_what_the_tasks_did_since_the_look_before() {
    let own = [process(10, 5, None)];
    let mut totals = Totals::default();
    let ms = |at: u64| at * 1_000_000;
    add(&mut totals, 1, device(None, &own));
    totals.look(&1, ms(1_001), Some(&looked(0)));
    add(&mut totals, 2, device(None, &own));
    totals.look(&1, ms(2_001), Some(&looked(60)));
    assert_eq!(idle(&group(&totals, 1, 2)), [Some(900), Some(60), Some(60), Some(0)]);
    // A look between two readings takes nothing from the next.
    totals.look(&1, ms(2_500), Some(&looked(500)));
    add(&mut totals, 3, device(None, &own));
    totals.look(&1, ms(3_001), Some(&looked(560)));
    assert_eq!(idle(&group(&totals, 1, 3)), [Some(1_800), Some(160), Some(160), Some(0)]);
    // Two readings, one look: they share what it found.
    add(&mut totals, 4, device(None, &own));
    add(&mut totals, 5, device(None, &own));
    totals.look(&1, ms(5_001), Some(&looked(560 + 100)));
    assert_eq!(idle(&group(&totals, 1, 5)), [Some(3_600), Some(260), Some(260), Some(0)]);
    // Nobody can tell: the probes are detached.
    add(&mut totals, 6, device(None, &own));
    totals.look(&1, ms(6_001), None);
    assert_eq!(idle(&group(&totals, 1, 6))[1..], [Some(360), Some(260), Some(100)]);
    // What the tasks did before the first look after that is in no second.
    add(&mut totals, 7, device(None, &own));
    totals.look(&1, ms(7_001), Some(&looked(9_000)));
    assert_eq!(idle(&group(&totals, 1, 7))[1..], [Some(360), Some(260), Some(100)]);
    totals.settle(&1);
    assert_eq!(idle(&group(&totals, 1, 7))[1], Some(500), "what waited for an explanation");
}

#[test]
fn a_gpu_that_was_given_and_not_used_is_held() {
    let claims = |of: Claim, is_relative| Claims { of: [of].into(), is_relative };
    let times = |totals: &Totals<u32>, job| {
        let group = totals.groups_for(&job, 9 * S).pop();
        group
            .map(|group| [Gpu::held_ns, Gpu::used_ns].map(|field| group.number(field).unwrap() / S))
    };
    let mut totals = Totals::default();
    totals.claim([(1, claims(Claim::Uuid("GPU-a".into()), false))].into());
    let idle = |processes: &[ProcessReading]| {
        let busy = Some(Busy::default()).filter(|_| processes.is_empty());
        DeviceReading { busy, ..device(None, processes) }
    };
    for at in 1..=4 {
        add(&mut totals, at, idle(&[]));
    }
    assert_eq!(times(&totals, 1), Some([3, 0]));
    assert_eq!(group(&totals, 1, 4).number(Gpu::memory_peak_bytes), Some(0));
    add(&mut totals, 5, idle(&[process(10, 5, None)]));
    assert_eq!(times(&totals, 1), Some([4, 1]));
    // Another's process on it: both have it.
    add(&mut totals, 6, idle(&[process(20, 5, None)]));
    assert_eq!((times(&totals, 1), times(&totals, 2)), (Some([5, 1]), Some([1, 1])));
    assert_eq!(group(&totals, 1, 6).number(Gpu::readings_shared), Some(1));
    totals.claim(BTreeMap::new());
    add(&mut totals, 7, idle(&[]));
    assert_eq!(times(&totals, 1), Some([5, 1]), "it is the job's no longer");
    // A driver that tells no processes: the only one that has it uses it.
    totals.claim([(1, claims(Claim::Index(0), false))].into());
    add(&mut totals, 8, device(None, &[]));
    assert_eq!(times(&totals, 1), Some([6, 2]));
}

#[test]
fn numbers_that_count_within_a_job_are_believed_until_something_speaks_against_them() {
    let zero = |is_relative| Claims { of: [Claim::Index(0)].into(), is_relative };
    let held = |totals: &Totals<u32>, job| totals.groups_for(&job, 9 * S).len();
    let empty = || device(None, &[]);
    let mut totals = Totals::default();
    totals.claim([(1, zero(true))].into());
    add(&mut totals, 1, empty());
    assert_eq!(held(&totals, 1), 1, "nothing speaks against it");
    let mut totals = Totals::default();
    totals.claim([(1, zero(true)), (2, zero(true))].into());
    add(&mut totals, 1, empty());
    assert_eq!((held(&totals, 1), held(&totals, 2)), (0, 0), "each counts from zero");
    let mut totals = Totals::default();
    totals.claim([(1, zero(true)), (2, zero(false))].into());
    add(&mut totals, 1, empty());
    assert_eq!(held(&totals, 2), 1, "the node's own number");
    let mut totals = Totals::default();
    totals.claim([(1, zero(true))].into());
    let other = Arc::new(Device { index: 1, uuid: "GPU-b".into(), ..Device::default() });
    let on_other = DeviceReading { device: other, ..device(None, &[process(10, 5, None)]) };
    add(&mut totals, 1, on_other);
    add(&mut totals, 2, empty());
    assert_eq!(held(&totals, 1), 1, "it is on another: its zero is not the node's");
}

#[test]
fn a_schedulers_numbers_do_not_mean_the_chip_of_the_console() {
    let of = |vendor: &str, uuid: &str| {
        let named = Device { vendor: vendor.into(), uuid: uuid.into(), ..Device::default() };
        DeviceReading { device: Arc::new(named), ..device(None, &[]) }
    };
    let reading =
        |at: u64, devices: Vec<DeviceReading>| GpuReading { monotonic_ns: at * S, devices };
    let (chip, card) = (of("intel", "PCI-0"), of("nvidia", "GPU-a"));
    let mut totals = Totals::<u32>::default();
    totals.claim([(1, Claims { of: [Claim::Minor(0)].into(), is_relative: false })].into());
    totals.add(&reading(1, vec![chip.clone(), card]), |_| None);
    let held = |totals: &Totals<u32>| {
        let groups = totals.groups_for(&1, 9 * S);
        groups.iter().map(|group| group.tags[1].clone()).collect::<Vec<_>>()
    };
    assert_eq!(held(&totals), ["GPU-a"]);
    // The card is lost for a moment.
    totals.add(&reading(2, vec![chip.clone()]), |_| None);
    assert_eq!(held(&totals), ["GPU-a"]);
    let mut alone = Totals::<u32>::default();
    alone.claim([(1, Claims { of: [Claim::Minor(0)].into(), is_relative: false })].into());
    alone.add(&reading(1, vec![chip]), |_| None);
    assert_eq!(held(&alone), ["PCI-0"], "a node of such cards");
}
