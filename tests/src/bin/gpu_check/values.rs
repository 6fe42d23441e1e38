//! What one job did to the GPU, and what sampling costs.

use std::{env, thread::sleep, time::Instant};

use jobtrace::model::tables::Gpu;

use crate::{
    check::{Check, Running, SEVERAL, Work, percent_busy},
    truth::{devices, energy_millijoules, is_persistent, smi_processes},
};

/// How long each kind of turns is watched: whole turns, and long enough for the seconds at both ends.
const SECONDS: u32 = 40;
/// How long an idle GPU is watched.
const IDLE_SECONDS: u32 = 10;
/// Of a reading of one device. Nearly all of it is the driver's own: an H100 with driver 580 took 10.9 ms where all was asked
/// each time. Tests run builds that are not optimised, with a driver that takes no time.
const MOST_MS: f64 = if cfg!(debug_assertions) { 5.0 } else { 9.5 };
/// Why there is no row about energy.
const NO_ENERGY: &str = "the GPU has no counter of energy";

/// The draw of an idle GPU, before anybody samples, and while it is sampled.
pub fn idle_draw(check: &mut Check) {
    let what = "more power of an idle GPU while it is sampled";
    if is_persistent() != Some(true) {
        return check.left_out(what, "not in persistence mode, or no nvidia-smi");
    }
    let Some(alone) = watts(check) else { return check.left_out(what, NO_ENERGY) };
    check.sample();
    check.comes(|| check.sampler().cost().readings > 0);
    let more = watts(check).map(|sampled| sampled - alone);
    // It may draw less: the first watts are of a GPU that has just worked.
    check.row(what, more, "W", f64::NEG_INFINITY..=2.0 + alone * 0.05);
}

fn watts(check: &Check) -> Option<f64> {
    let (begin, before) = (Instant::now(), energy_millijoules()?);
    sleep(check.seconds(IDLE_SECONDS));
    let millijoules = energy_millijoules()?.checked_sub(before)?;
    Some(millijoules as f64 / 1e3 / begin.elapsed().as_secs_f64())
}

/// Work in turns, whatever their length.
pub fn utilisation(check: &mut Check) {
    let seconds = env::var("GPU_CHECK_SECONDS").ok().and_then(|text| text.parse().ok());
    for period_ms in [300, 970, 1000, 5000] {
        let work = Work { period_ms, mib: 16, ..Work::HALF };
        let running = check.spin(seconds.unwrap_or(SECONDS), work);
        let job = running.job();
        running.finish();
        let found = check.group(job).as_ref().and_then(percent_busy);
        check.row(&format!("busy for half of each {period_ms} ms"), found, "%", 45.0..=55.0);
    }
}

/// Memory, processes and energy of one job, as others tell them.
pub fn memory_and_energy(check: &mut Check) {
    let running = check.spin(SECONDS, Work { percent: 80, ..Work::HALF });
    check.is_seen(running.job());
    let begin = energy(check, &running);
    as_smi_says(check, &[&running]);
    sleep(check.seconds(SECONDS / 2));
    let end = energy(check, &running);
    let job = running.job();
    running.finish();
    check.memory_row("memory", check.number(job, Gpu::memory_peak_bytes));
    let shared = check.number(job, Gpu::readings_shared).map(|count| count as f64);
    check.row("readings with others on the GPU", shared, "", 0.0..=0.0);
    let what = "energy, of what the device's counter says";
    let ratio = begin.zip(end).and_then(|(begin, end)| {
        let [ours, theirs] = [0, 1].map(|of| end[of].checked_sub(begin[of]));
        Some(ours? as f64 / theirs? as f64 * 100.0)
    });
    match energy_millijoules() {
        Some(_) => check.row(what, ratio, "%", 98.0..=102.0),
        None => check.left_out(what, NO_ENERGY),
    }
}

/// Millijoules of the job and of the device, right after a reading.
fn energy(check: &Check, running: &Running) -> Option<[u64; 2]> {
    check.next_reading().then_some(())?;
    let device = energy_millijoules()?;
    Some([check.number(running.job(), Gpu::energy_joules)?, device])
}

/// Rows for the memory and the number of processes of all that run, against nvidia-smi.
pub fn as_smi_says(check: &mut Check, running: &[&Running]) {
    let what = format!("{} of our jobs on the GPU", running.len());
    let Some(listed) = smi_processes() else {
        return check.left_out(&what, "no nvidia-smi");
    };
    let sum = |field| {
        let number = |of: &&Running| check.number(of.job(), field);
        running.iter().map(number).sum::<Option<u64>>().map(|sum| sum as f64)
    };
    let (bytes, processes) = (sum(Gpu::memory_used_bytes), sum(Gpu::processes));
    let mib: u64 = listed.values().sum();
    // Both round each to a MiB.
    let near = running.len() as f64;
    let mib = mib as f64 - near..=mib as f64 + near;
    let memory = bytes.map(|bytes| bytes / f64::from(1 << 20));
    check.row(&format!("{what}: memory, as nvidia-smi tells it"), memory, "MiB", mib);
    let count = listed.len() as f64;
    check.row(
        &format!("{what}: processes, as nvidia-smi tells them"),
        processes,
        "",
        count..=count,
    );
}

/// What all of it took, and whether a device was lost.
pub fn cost(check: &mut Check) {
    check.comes(|| check.sampler().cost().readings >= SEVERAL);
    let cost = check.sampler().cost();
    let ms = cost.cpu_ns as f64 / 1e6 / cost.readings as f64;
    check.row("CPU time of a reading", Some(ms), "ms", 0.0..=MOST_MS * f64::from(devices()));
    println!("      so {:.3} % of a core at one reading a second", ms / 10.0);
    check.row("devices lost", Some(cost.failures as f64), "", 0.0..=0.0);
    check.sampler().notes().iter().for_each(|note| println!("      said: {note}"));
}
