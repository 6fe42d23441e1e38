//! Readings as a driver could give them, and what comes of them.

use super::*;

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
    let reading = Reading { monotonic_ns: at_s * S, devices: vec![device] };
    totals.add(&reading, |process| Some(process.pid / 10).filter(|job| *job > 0));
}

fn group(totals: &Totals<u32>, job: u32, at_s: u64) -> Group {
    totals.groups_for(&job, at_s * S).pop().expect("the job was on the device")
}

fn energy(totals: &Totals<u32>, job: u32) -> Option<u64> {
    group(totals, job, 0).number("energy_joules")
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
        let hist = group(totals, job, 1).hist("utilization_ratio").cloned();
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
    assert_eq!(group(&totals, 1, 3).number("memory_used_bytes"), Some(11));
    assert_eq!(group(&totals, 1, 3).number("readings_shared"), Some(2));
}

#[test]
fn a_state_ends_with_the_job_or_with_the_answers() {
    let mut totals = Totals::default();
    add(&mut totals, 1, device(None, &[process(10, 5, None)]));
    assert_eq!(group(&totals, 1, 6).number("memory_used_bytes"), Some(5));
    assert_eq!(group(&totals, 1, 7).number("memory_used_bytes"), None, "no answer since");
    add(&mut totals, 7, device(None, &[]));
    assert_eq!(group(&totals, 1, 7).number("processes"), None, "it left");
    assert_eq!(group(&totals, 1, 7).number("memory_peak_bytes"), Some(5));
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
    for name in ["power_watts", "utilization_ratio"] {
        assert_eq!(sum.hist(name), whole.hist(name), "{name}");
    }
    for name in ["energy_joules", "memory_peak_bytes", "readings_shared"] {
        assert_eq!(sum.number(name), whole.number(name), "{name}");
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
