//! `gpu_check FOLDER`: whether what jobtrace says of a node's first NVIDIA GPU is what workloads did to it and what
//! others say of it. FOLDER has `jobtrace` and `cuda_work`. Builds nothing, and loads probes only where they may be
//! loaded; each line says what was found and what it must be. The exit status is 1 if one is wrong.

mod check;
mod jobs;
mod places;
mod truth;
mod values;

use std::{env, path::PathBuf, process::ExitCode};

use self::check::Check;

fn all(check: &mut Check) {
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
    println!("{} wrong", check.wrong());
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [folder, rest @ ..] = &words[..] else { panic!("gpu_check FOLDER") };
    let mut check = Check::new(PathBuf::from(folder));
    match rest {
        [] => all(&mut check),
        [places::SEEN, place, job] => places::seen(&mut check, place, job),
        _ => panic!("gpu_check FOLDER"),
    }
    ExitCode::from(u8::from(check.wrong() > 0))
}
