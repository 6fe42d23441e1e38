//! `gpu_check FOLDER`: whether what jobtrace says of a node's first NVIDIA GPU is what workloads did to it and what
//! others say of it. FOLDER has `jobtrace` and `cuda_work`. Builds nothing, and loads probes only where they may be
//! loaded; each line says what was found and what it must be. `gpu_check FOLDER PART...` checks these parts alone. The
//! exit status is 0 if all is well, 1 if something is wrong, 2 if nothing is and something could not be checked, 64 if it
//! is used wrongly.

mod check;
mod jobs;
mod places;
mod truth;
mod values;

use std::{env, path::PathBuf, process::ExitCode};

use self::{check::Check, truth::Obstacle};

/// The exit status of wrong use (EX_USAGE).
const USAGE: u8 = 64;

/// A part of the check, and its name.
type Part = (&'static str, fn(&mut Check));

/// What is checked, each by a name to ask for it alone. The first begins to sample by itself, and the last ends it.
const PARTS: [Part; 11] = [
    ("idle", values::idle_draw),
    ("utilisation", values::utilisation),
    ("memory", values::memory_and_energy),
    ("two", jobs::two),
    ("killed", jobs::killed),
    ("mps", jobs::through_mps),
    ("places", places::elsewhere),
    ("jobtrace", places::in_jobtrace),
    ("crash", jobs::crashed),
    ("cost", values::cost),
    ("restarts", places::restarts),
];

fn all(check: &mut Check, parts: &[&str]) {
    match truth::obstacle() {
        Some(Obstacle::LeftOut(why)) => return check.left_out("all of it", &why),
        Some(Obstacle::Wrong(why)) => return check.wrong("all of it", &why),
        None => {}
    }
    for (at, (name, part)) in PARTS.into_iter().enumerate() {
        if parts.is_empty() || parts.contains(&name) {
            if at > 0 {
                check.sample_on();
            }
            part(check);
        }
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let usage = || {
        let parts = PARTS.map(|(name, _)| name).join(" ");
        eprintln!("usage: gpu_check FOLDER [PART...], of {parts}");
        ExitCode::from(USAGE)
    };
    let Some((folder, rest)) = words.split_first() else { return usage() };
    let missing = ["jobtrace", "cuda_work"].map(|name| PathBuf::from(folder).join(name));
    if let Some(program) = missing.iter().find(|program| !program.exists()) {
        eprintln!(
            "gpu_check: there is no {}: build it, see tests/hardware/gpu.sh",
            program.display()
        );
        return ExitCode::from(USAGE);
    }
    let mut check = Check::new(PathBuf::from(folder));
    match rest {
        [places::SEEN, place, job] => places::seen(&mut check, place, job),
        parts if parts.iter().all(|part| PARTS.iter().any(|(name, _)| name == part)) => {
            all(&mut check, parts);
            println!("{}", check.summary());
        }
        _ => return usage(),
    }
    ExitCode::from(check.code())
}
