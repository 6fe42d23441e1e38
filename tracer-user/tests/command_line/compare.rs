//! `jobtrace compare` on a recorded run, made into runs of several sizes.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::program::{Ended, RECORDINGS, end, jobtrace, recording, replay};

/// The record of the recording, and the file of one like it on `cores` that took `ms`.
fn files(dir: &Path, sizes: &[(u64, u64)]) -> Vec<PathBuf> {
    let json = dir.join("recorded");
    let ended =
        replay(&recording("disk"), &["--quiet".as_ref(), "--json".as_ref(), json.as_os_str()]);
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    let recorded: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let file = |(at, (cores, ms)): (usize, &(u64, u64))| {
        let mut record = recorded.clone();
        record["job"]["job"] = format!("job{at}").into();
        record["cpu"]["cores_held"] = (*cores as f64).into();
        record["elapsed_ns"] = (ms * 1_000_000).into();
        let path = dir.join(format!("{at}.json"));
        std::fs::write(&path, record.to_string()).unwrap();
        path
    };
    sizes.iter().enumerate().map(file).collect()
}

fn compare(files: &[PathBuf], options: &[&str]) -> Ended {
    end(jobtrace().arg("compare").args(files).args(options))
}

/// 10 % serial: 1000 ms, 550, 325, 212.5.
const SIZES: [(u64, u64); 8] =
    [(1, 1001), (2, 550), (4, 325), (8, 212), (1, 999), (2, 551), (4, 324), (8, 213)];

#[test]
fn runs_of_several_sizes_are_compared_in_whatever_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = files(dir.path(), &SIZES);
    let ended = compare(&files, &[]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let text = &ended.stdout;
    assert!(
        text.starts_with("sh  the same work: 8 runs at 4 sizes, by cores allocated\n"),
        "{text}"
    );
    assert!(
        text.contains("  • 8 cores were 4.71 times as fast as 1: an efficiency of 59 %\n"),
        "{text}"
    );
    assert!(text.contains("Amdahl's law: "), "{text}");
    assert!(text.contains("universal scalability law: contention "), "{text}");
    let json = compare(&files, &["--json"]);
    let found: Value = serde_json::from_str(&json.stdout).unwrap();
    let serial = &found["amdahl"]["serial_fraction"];
    let [low, all, high] = ["low", "all", "high"].map(|end| serial[end].as_f64().unwrap());
    assert!(0.095 < low && low <= all && all <= high && high < 0.105, "{serial}");
    assert_eq!(found["sizes"][3]["jobs"].as_array().unwrap().len(), 2);
    files.reverse();
    // One that is named twice counts once.
    files.push(files[0].clone());
    let reversed: Value = serde_json::from_str(&compare(&files, &["--json"]).stdout).unwrap();
    assert_eq!(reversed["sizes"][3]["median_ns"], found["sizes"][3]["median_ns"]);
    assert_eq!(reversed["amdahl"], found["amdahl"]);
}

#[test]
fn what_is_not_the_same_work_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path(), &SIZES[..3]);
    let mut other: Value = serde_json::from_slice(&std::fs::read(&files[1]).unwrap()).unwrap();
    other["job"]["command"] = "./another".into();
    other["exit"]["code"] = 3.into();
    std::fs::write(&files[1], other.to_string()).unwrap();
    let refused = compare(&files, &[]);
    assert_eq!((refused.status, refused.stdout.as_str()), (2, ""));
    for reason in [
        "jobtrace: these runs did not do the same work (--force compares them all the same):\n",
        "\n  job1 failed (exit status 3)\n",
        "\n  their commands differ: sh -c ",
    ] {
        assert!(refused.stderr.contains(reason), "{reason}: {}", refused.stderr);
    }
    let forced = compare(&files, &["--force"]);
    assert_eq!(forced.status, 0, "{}", forced.stderr);
    assert!(
        forced.stdout.contains("Not the same  job1 failed (exit status 3)"),
        "{}",
        forced.stdout
    );
}

#[test]
fn saved_runs_are_found_by_their_name_all_of_them() {
    let dir = tempfile::tempdir().unwrap();
    for name in RECORDINGS {
        let options = ["--quiet".as_ref(), "--save".as_ref(), dir.path().as_os_str()];
        assert_eq!(replay(&recording(name), &options).status, 0);
    }
    let from = |job: &str| end(jobtrace().args(["compare", job, "--from"]).arg(dir.path()));
    let one_size = from("sh");
    assert_eq!((one_size.status, one_size.stdout.as_str()), (2, ""));
    assert!(one_size.stderr.contains("there are 2 runs, all of size "), "{}", one_size.stderr);
    assert!(one_size.stderr.contains("--size used goes by"), "{}", one_size.stderr);
    let none = from("4711");
    assert_eq!(none.status, 2);
    assert!(none.stderr.contains("no record of job 4711 in "), "{}", none.stderr);
}
