//! Starting, signalling and waiting for real commands, unprivileged.
//!
//! Without arguments it runs the cases; with the name of a role it is one of their processes.

mod cases;
mod roles;
#[allow(dead_code, reason = "the tests of `top` use the rest")]
mod terminal;

use std::{ffi::OsStr, process::ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.first().and_then(|role| role.to_str()) {
        Some("run") => roles::run(&arguments[1..], || {}),
        Some("early") => {
            roles::run(&arguments[2..], || roles::signal(own(), number(&arguments[1])))
        }
        Some("after-urg") => roles::run(&arguments[1..], || roles::signal(0, libc::SIGURG)),
        Some("count") => roles::count(),
        Some("count-apart") => roles::count_apart(),
        // A filter or an option of libtest, as `cargo test NAME` passes on to every binary.
        filter => run_cases(filter.filter(|word| !word.starts_with('-')).unwrap_or("")),
    }
}

fn own() -> i32 {
    std::process::id() as i32
}

fn number(word: &OsStr) -> i32 {
    word.to_str().and_then(|word| word.parse().ok()).expect("a signal's number")
}

fn run_cases(filter: &str) -> ExitCode {
    let chosen = cases::ALL.iter().filter(|(name, _)| name.contains(filter));
    for (name, case) in chosen {
        eprint!("test {name} ... ");
        case();
        eprintln!("ok");
    }
    ExitCode::SUCCESS
}
