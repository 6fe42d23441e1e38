//! Readings as a driver could give them, and what comes of them.

mod claims;
mod idle;

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
    let reading = GpuReading { monotonic_ns: at_s * S, period_ns: S, devices: vec![device] };
    totals.add(&reading, |process| Some(process.pid / 10).filter(|job| *job > 0));
}

fn group(totals: &Totals<u32>, job: u32, at_s: u64) -> Group {
    totals.groups_for(&job, at_s * S).pop().expect("the job was on the device")
}

fn energy(totals: &Totals<u32>, job: u32) -> Option<u64> {
    group(totals, job, 0).number(Gpu::energy_joules)
}

/// The last word on it is what it is now, and one that comes and goes says no more than a few.
#[test]
fn each_loss_of_a_device_and_its_return_are_said() {
    let part =
        Device { uuid: "MIG-a".into(), parent: "GPU-a".into(), index: 2, ..Device::default() };
    for is_part in [false, true] {
        let mut totals = Totals::default();
        let reading = || match is_part {
            true => DeviceReading {
                device: Arc::new(part.clone()),
                ..device(None, &[process(10, 5, None)])
            },
            false => device(None, &[process(10, 5, None)]),
        };
        add(&mut totals, 1, reading());
        for at_s in 2..10 {
            totals.lose("GPU-a", "it was lost".into());
            totals.lose("GPU-a", "it was lost".into());
            add(&mut totals, at_s, reading());
        }
        let notes = totals.notes_for(&1);
        let back = if is_part { "GPU 2 is back" } else { "GPU 0 () is back" };
        assert_eq!(notes[..4], ["it was lost", back, "it was lost", back]);
        assert_eq!(notes[7..], [format!("{back}; further losses of it are not told")]);
        assert_eq!((notes.len(), totals.notes_for(&2)), (8, vec![]));
    }
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
    assert_eq!(energy(&totals, 1), Some(201_020), "not asked for: by its 200 W");
    add(&mut totals, 124, device(Some(200_125), own));
    assert_eq!(energy(&totals, 1), Some(201_120), "together what the counter says");
}

#[test]
fn a_device_without_a_counter_has_no_energy() {
    let mut totals = Totals::default();
    add(&mut totals, 1, device(None, &[process(10, 0, None)]));
    add(&mut totals, 2, device(None, &[process(10, 0, None)]));
    assert_eq!(energy(&totals, 1), None);
}

#[test]
fn bytes_told_otherwise_are_not_counted_again_and_replays_grow_over_readings_without_them() {
    let mut totals = Totals::default();
    let mut read = |at_s, counted: Option<u64>, measured: Option<u64>, replays: Option<u64>| {
        let mut read = device(None, &[process(10, 0, None)]);
        read.counters.pcie_sent_bytes = counted;
        read.traffic.pcie_sent_bytes = measured;
        read.counters.pcie_replays = replays;
        add(&mut totals, at_s, read);
        let group = group(&totals, 1, at_s);
        [group.number(Gpu::pcie_sent_bytes), group.number(Gpu::pcie_replays)]
    };
    assert_eq!(read(1, Some(1_000), None, Some(5)), [None, Some(0)]);
    assert_eq!(read(2, None, Some(600), None), [Some(600), Some(0)]);
    assert_eq!(read(3, Some(1_700), None, None), [Some(600), Some(0)], "600 of them are told");
    assert_eq!(read(4, Some(1_900), None, Some(7)), [Some(800), Some(2)]);
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
fn a_display_server_with_nothing_to_do_is_on_nobodys_device_whosever_it_is() {
    let draws = |pid, percent| ProcessReading { only_draws: true, ..process(pid, 3, percent) };
    let shared = |totals: &Totals<u32>, job| {
        let group = group(totals, job, 9);
        (group.number(Gpu::readings_shared).unwrap(), group.number(Gpu::memory_used_bytes))
    };
    // Nobody's, and the system's own job's, as for the agent.
    for display in [1, 20] {
        let mut totals = Totals::default();
        add(&mut totals, 5, device(None, &[process(10, 5, Some(90)), draws(display, Some(0))]));
        assert_eq!(shared(&totals, 1), (0, Some(5)), "{display}");
        add(&mut totals, 6, device(None, &[process(10, 5, Some(90)), draws(display, Some(1))]));
        assert_eq!(shared(&totals, 1), (1, Some(5)), "{display} draws");
        add(&mut totals, 7, device(None, &[process(10, 5, None), draws(display, None)]));
        assert_eq!(shared(&totals, 1), (2, Some(5)), "nobody knows whether {display} draws");
    }
    let mut totals = Totals::default();
    let all = [process(10, 5, Some(90)), draws(20, Some(0)), draws(30, Some(0))];
    add(&mut totals, 5, device(None, &all));
    assert_eq!(shared(&totals, 2), (1, Some(3)), "it has its own part alone");
    add(&mut totals, 6, device(None, &all[1..]));
    assert_eq!([2, 3].map(|job| shared(&totals, job)), [(2, Some(3)), (2, Some(3))]);
    // Of who was given the device and does not compute, the server takes nothing either.
    let mut totals = Totals::default();
    totals.claim([(1, Claims { of: [Claim::Index(0)].into(), is_relative: false })].into());
    add(&mut totals, 5, device(None, &[draws(20, Some(0))]));
    assert_eq!(shared(&totals, 1).0, 0);
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

#[test]
fn a_reading_that_comes_late_counts_for_the_time_it_stands_for() {
    let mut totals = Totals::default();
    let mut read = |at_s, percent: u64| {
        let mut device = device(None, &[process(10, 0, None)]);
        let ppm = percent * 10_000;
        device.busy = Some(Busy { sm_ppm: ppm, memory_ppm: Some(ppm) });
        device.activity.sm_ppm = Some(ppm);
        add(&mut totals, at_s, device);
        totals.look(&1, at_s * S, None);
    };
    // The third one is of the three seconds in which the driver did not answer.
    [(1, 100), (2, 100), (5, 0), (6, 100), (7, 0)].into_iter().for_each(|(at, of)| read(at, of));
    let group = group(&totals, 1, 7);
    for field in [Gpu::utilization_ratio, Gpu::memory_utilization_ratio, Gpu::sm_activity_ratio] {
        let hist = group.hist(field).unwrap();
        // The first counts once, though nobody knows of how much time it is.
        assert_eq!((hist.count(), hist.sum), (7, 3_000_000), "{field:?}");
    }
    let ns = |field| group.number(field).unwrap() / S;
    assert_eq!((ns(Gpu::busy_ns), ns(Gpu::held_ns)), (2, 6));
    // A state is as it was when it was read.
    assert_eq!(group.hist(Gpu::power_watts).unwrap().count(), 5);
}
