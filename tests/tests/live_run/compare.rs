//! Work of a known serial part, really run on one and on two CPUs: `compare` finds the part.

use std::{path::Path, process::Command};

use serde_json::Value;

use crate::program::{program, run};

const SCALE: &str = env!("CARGO_BIN_EXE_scale");
/// On one CPU 2.4 s, on two 1.4 s.
const SERIAL_MS: &str = "400";
const SHARED_MS: &str = "2000";

/// The first two CPUs that there are to use.
fn cpus() -> [String; 2] {
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    let usable = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    let first: Vec<String> = usable.take(2).map(|cpu| cpu.to_string()).collect();
    first.try_into().expect("two CPUs")
}

/// Runs it on `cpus`, saved in `runs`.
fn scale(cpus: &str, runs: &Path) {
    let mut command = Command::new("taskset");
    command.args(["-c", cpus]).arg(program()).args(["run", "--quiet", "--name", "scale", "--save"]);
    let status = command.arg(runs).args(["--", SCALE, SERIAL_MS, SHARED_MS]).status().unwrap();
    assert!(status.success(), "{status}");
}

fn compare(runs: &Path, options: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(program());
    command.args(["compare", "scale"]).args(options).arg("--from").arg(runs).env("LANG", "C.UTF-8");
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_serial_part_of_work_on_one_and_two_cpus_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path();
    let [first, second] = cpus();
    for _ in 0..2 {
        scale(&first, runs);
        scale(&format!("{first},{second}"), runs);
    }
    let (status, json, said) = compare(runs, &["--json"]);
    assert_eq!((status, said.as_str()), (0, ""));
    let found: Value = serde_json::from_str(&json).unwrap();
    let [one, two] = [0, 1].map(|at: usize| &found["sizes"][at]);
    let number =
        |of: &Value, name: &str| of[name].as_f64().unwrap_or_else(|| panic!("{name}: {found}"));
    let within = |what: &str, value: f64, least: f64, most: f64| {
        eprintln!("{what}: {value:.3}, of {least} to {most}");
        assert!((least..=most).contains(&value), "{what}: {value} in {found}");
    };
    for (size, cores) in [(one, 1.0), (two, 2.0)] {
        within("cores", number(size, "cores"), cores, cores);
        assert_eq!(size["jobs"].as_array().unwrap().len(), 2);
    }
    // The kernel leaves others 5 % of a CPU, which is late for the one and the other.
    within("seconds on one", number(one, "median_ns") / 1e9, 2.38, 3.6);
    within("seconds on two", number(two, "median_ns") / 1e9, 1.38, 2.2);
    within("speed-up (1.71)", number(two, "speed_up"), 1.4, 1.9);
    within("efficiency (0.86)", number(two, "efficiency"), 0.7, 0.95);
    within("serial part (0.17)", number(two, "serial_fraction"), 0.05, 0.43);
    within("cores used of two (1.71)", number(two, "cores_used"), 1.3, 1.9);
    let on_cpu = &found["growth"]["on_cpu"];
    within("seconds on CPU", number(on_cpu, "to_ns") / 1e9, 2.35, 2.7);
    // The second CPU is idle during the serial part.
    let held = &found["growth"]["held"];
    let more_s = (number(held, "to_ns") - number(held, "from_ns")) / 1e9;
    within("more seconds held (0.4)", more_s, 0.1, 1.2);
    let (_, text, _) = compare(runs, &[]);
    assert!(
        text.starts_with("scale  the same work: 4 runs at 2 sizes, by cores allocated\n"),
        "{text}"
    );
    eprintln!("{text}");

    // Another command of that name is another work.
    let other = run(["--quiet", "--name", "scale", "--save", runs.to_str().unwrap(), "--", "true"]);
    assert_eq!(other.status, 0);
    let (status, _, said) = compare(runs, &[]);
    assert!(status == 2 && said.contains("their commands differ: "), "{status}: {said}");
}
