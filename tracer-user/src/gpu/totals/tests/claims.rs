//! Devices that were given to a job, used by it or not.

use super::{idle::looked, *};
use crate::model::job::Job;

/// A MIG instance does not tell how busy it is; nor does a process of a shared device with some drivers.
#[test]
fn time_without_a_process_is_no_share_of_a_time_that_nobody_tells() {
    let sm = |totals: &Totals<u32>| {
        let group = group(totals, 1, 9);
        let hist = group.hist(Gpu::utilization_ratio).map(Hist::count);
        (hist, group.number(Gpu::busy_ns), group.number(Gpu::used_ns).unwrap() / S)
    };
    let claim = Claims { of: [Claim::Uuid("GPU-a".into())].into(), is_relative: false };
    let mut totals = Totals::default();
    totals.claim([(1, claim.clone())].into());
    let silent = |processes: &[_]| DeviceReading { busy: None, ..device(None, processes) };
    for (at_s, processes) in [(1, vec![]), (2, vec![]), (3, vec![process(10, 5, None)])] {
        add(&mut totals, at_s, silent(&processes));
        totals.look(&1, at_s * S + 1, Some(&looked(0)));
    }
    assert_eq!(sm(&totals), (None, None, 1));
    // Job 2 computes on the device that job 1 was given too.
    let mut totals = Totals::default();
    totals.claim([(1, claim)].into());
    for (at_s, of_other) in [(1, None), (2, None), (3, Some(40))] {
        add(&mut totals, at_s, device(None, &[process(20, 5, of_other)]));
        totals.look(&1, at_s * S + 1, Some(&looked(0)));
    }
    assert_eq!(sm(&totals).0, Some(1), "the driver told it by process then");
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
    // A chip of another maker's is none that numbers mean.
    let of = |vendor: &str, uuid: &str, processes: &[ProcessReading]| {
        let named = Device { vendor: vendor.into(), uuid: uuid.into(), ..Device::default() };
        DeviceReading { device: Arc::new(named), ..device(None, processes) }
    };
    let mut totals = Totals::default();
    totals.claim([(1, zero(true))].into());
    for at in 1..=2 {
        let devices =
            vec![of("intel", "PCI-0", &[process(10, 5, None)]), of("nvidia", "GPU-a", &[])];
        let reading = GpuReading { monotonic_ns: at * S, period_ns: S, devices };
        totals.add(&reading, |process| Some(process.pid / 10));
    }
    assert_eq!(held(&totals, 1), 2, "the chip that it draws with, and the card that it was given");
}

#[test]
fn a_schedulers_numbers_do_not_mean_the_chip_of_the_console() {
    let of = |vendor: &str, uuid: &str| {
        let named = Device { vendor: vendor.into(), uuid: uuid.into(), ..Device::default() };
        DeviceReading { device: Arc::new(named), ..device(None, &[]) }
    };
    let reading = |at: u64, devices: Vec<DeviceReading>| GpuReading {
        monotonic_ns: at * S,
        period_ns: S,
        devices,
    };
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

/// `steps = true`: the job has its devices from its begin to its end, its steps those that they are on.
#[test]
fn a_device_is_held_by_the_steps_that_are_on_it_else_by_their_job() {
    let job = |step: &str| Job { job: "7".into(), step: step.into(), ..Job::default() };
    let owner = |process: &ProcessReading| Some(job(&(process.pid / 10 - 1).to_string()));
    let seconds = |totals: &Totals<Job>, step: &str| {
        let group = totals.groups_for(&job(step), 9 * S).pop();
        let of = |group: Group| {
            [Gpu::held_ns, Gpu::used_ns, Gpu::readings_shared]
                .map(|field| group.number(field).unwrap())
        };
        group.map(of).map(|[held, used, shared]| [held / S, used / S, shared])
    };
    for claim in [Claim::Uuid("GPU-a".into()), Claim::Index(0)] {
        let mut totals = Totals::default();
        totals.claim([(job(""), Claims { of: [claim].into(), is_relative: true })].into());
        for (at, processes) in [
            (1, vec![]),
            (2, vec![process(10, 5, None)]),
            (3, vec![process(20, 5, None)]),
            (4, vec![]),
        ] {
            let busy = Some(Busy::default());
            let devices = vec![DeviceReading { busy, ..device(None, &processes) }];
            totals.add(&GpuReading { monotonic_ns: at * S, period_ns: S, devices }, owner);
        }
        assert_eq!(seconds(&totals, ""), Some([1, 0, 0]), "before and after its steps");
        assert_eq!(seconds(&totals, "0"), Some([1, 1, 0]));
        assert_eq!(seconds(&totals, "1"), Some([1, 1, 0]));
    }
    // A step that is elsewhere speaks against its job's numbers.
    let mut totals = Totals::default();
    totals.claim([(job(""), Claims { of: [Claim::Index(0)].into(), is_relative: true })].into());
    let other = Arc::new(Device { index: 1, uuid: "GPU-b".into(), ..Device::default() });
    let on_other = DeviceReading { device: other, ..device(None, &[process(10, 5, None)]) };
    for (at, read) in [(1, on_other), (2, device(None, &[]))] {
        totals.add(&GpuReading { monotonic_ns: at * S, period_ns: S, devices: vec![read] }, owner);
    }
    assert_eq!((seconds(&totals, ""), seconds(&totals, "0")), (None, Some([0, 0, 0])));
}
