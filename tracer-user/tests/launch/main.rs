//! Starting, signalling and waiting for real commands, unprivileged.
//!
//! Without arguments it runs the cases; with `run`, `early` or `count` it is one of their processes.

mod cases;
mod roles;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.first().and_then(|role| role.to_str()) {
        Some("run") => roles::run(&arguments[1..], false),
        Some("early") => roles::run(&arguments[1..], true),
        Some("count") => roles::count(),
        // A filter or an option of libtest, as `cargo test NAME` passes on to every binary.
        filter => run_cases(filter.filter(|word| !word.starts_with('-')).unwrap_or("")),
    }
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
