//! `gpu_check FOLDER`: whether what jobtrace says of a node's first NVIDIA GPU is what workloads did to it and what
//! others say of it. FOLDER has `jobtrace` and `cuda_work`. Builds nothing, and loads probes only where they may be
//! loaded; each line says what was found and what it must be. The exit status is 0 if all is well, 1 if something is
//! wrong, 2 if nothing is and something could not be checked, 64 if it is used wrongly.

mod check;
mod jobs;
mod places;
mod truth;
mod values;

use std::{env, path::PathBuf, process::ExitCode};

use self::{check::Check, truth::Obstacle};

/// The exit status of wrong use (EX_USAGE).
const USAGE: u8 = 64;

fn all(check: &mut Check) {
    match truth::obstacle() {
        Some(Obstacle::LeftOut(why)) => return check.left_out("all of it", &why),
        Some(Obstacle::Wrong(why)) => return check.wrong("all of it", &why),
        None => {}
    }
    values::idle_draw(check);
    check.sample();
    values::utilisation(check);
    values::memory_and_energy(check);
    jobs::two(check);
    jobs::killed(check);
    jobs::through_mps(check);
    // SAFETY: no pointers.
    if unsafe { libc::geteuid() } == 0 {
        places::as_unit_user(check);
        places::in_namespace(check);
    } else {
        check.left_out("the unit's user, PID namespaces", "not root");
    }
    places::in_jobtrace(check);
    jobs::crashed(check);
    values::cost(check);
    places::restarts(check);
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let usage = || {
        eprintln!("usage: gpu_check FOLDER");
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
        [] => {
            all(&mut check);
            println!("{}", check.summary());
        }
        [places::SEEN, place, job] => places::seen(&mut check, place, job),
        _ => return usage(),
    }
    ExitCode::from(check.code())
}
