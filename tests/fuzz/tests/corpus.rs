//! Every target on every committed input, and that none of the three (target, program, inputs) lacks
//! another.

use std::{
    collections::BTreeSet,
    fs,
    panic::catch_unwind,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use jobtrace_fuzz::{TARGETS, corpus};

/// For one input, in a build without optimisation on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);
/// A committed input's size, and how many a target has.
const MOST_BYTES: usize = 64 << 10;
const MOST_FILES: usize = 100;

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn what_holds_holds_for_every_committed_input() {
    let mut failed = Vec::new();
    for target in TARGETS {
        let inputs = files(&corpus(target.name));
        assert!((3..=MOST_FILES).contains(&inputs.len()), "{}: {}", target.name, inputs.len());
        for input in inputs {
            let data = fs::read(&input).unwrap();
            assert!(data.len() <= MOST_BYTES, "{input:?} has {} bytes", data.len());
            let begin = Instant::now();
            if catch_unwind(|| (target.run)(&data)).is_err() {
                failed.push(format!("{} with {}", target.name, input.display()));
            }
            assert!(begin.elapsed() < PATIENCE, "{input:?} took {:?}", begin.elapsed());
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn cut_anywhere_and_with_any_bit_flipped_as_well() {
    // libFuzzer goes further; this much takes a second and needs nothing.
    for target in TARGETS {
        for input in files(&corpus(target.name)).iter().take(8) {
            let data = fs::read(input).unwrap();
            if data.len() > 4096 {
                continue;
            }
            let step = data.len() / 24 + 1;
            for at in (0..data.len()).step_by(step) {
                (target.run)(&data[..at]);
                let mut flipped = data.clone();
                flipped[at] ^= 1 << (at % 8);
                (target.run)(&flipped);
            }
        }
    }
}

#[test]
fn each_target_has_a_program_and_inputs() {
    let names: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(names.len(), TARGETS.len());
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let stems = |folder: &str| -> BTreeSet<String> {
        let stem = |path: &PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
        files(&own.join(folder)).iter().map(stem).collect()
    };
    assert_eq!(stems("corpus"), names);
    assert_eq!(stems("libfuzzer/fuzz_targets"), names);
    let manifest = fs::read_to_string(own.join("libfuzzer/Cargo.toml")).unwrap();
    for name in &names {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} in Cargo.toml");
        let program = own.join(format!("libfuzzer/fuzz_targets/{name}.rs"));
        let program = fs::read_to_string(program).unwrap();
        assert!(program.contains(&format!("(\"{name}\")")), "{program}");
    }
}
