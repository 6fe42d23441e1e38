//! The first process of a virtual machine of `cargo xtask vm`: mounts what jobtrace needs, has a child
//! do the work, and switches the machine off. Everything it finds goes to the host, line by line.

mod checks;
mod jobs;
mod nfs;
mod setup;
mod sizes;
mod stuck;
mod tell;

use std::{env, panic, process};

use anyhow::{Context, Result, bail};
use rustix::system::{RebootCommand, reboot};
use xtask::guest::{CHECKS, Line, WORK, Work};

fn main() {
    if process::id() != 1 {
        let words: Vec<String> = env::args().skip(1).collect();
        let error = jobs::enter_and_become(&words);
        eprintln!("vm_guest: {error:#}; it is for virtual machines, run `cargo xtask vm`");
        process::exit(2);
    }
    if let Err(error) = work() {
        eprintln!("vm_guest: {error:#}");
    }
    // The host starts the machine so that this ends it.
    let _ = reboot(RebootCommand::Restart);
}

/// Mounts, then waits for the child that does the work, and for whatever else ends without a parent.
fn work() -> Result<()> {
    setup::mount_all()?;
    setup::load_modules()?;
    setup::begin_loopback()?;
    let line = setup::command_line()?;
    tell::open(&line)?;
    // SAFETY: one thread so far, so the child may do all that we may.
    let child = match unsafe { libc::fork() } {
        0 => process::exit(i32::from(panic::catch_unwind(|| told(&line)).is_err())),
        child => child,
    };
    loop {
        // SAFETY: no status is asked for.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } {
            -1 => bail!("the child is gone"),
            ended if ended == child => return Ok(()),
            _ => {}
        }
    }
}

/// What the command line asks for, from the first line told to the last.
fn told(line: &str) {
    let uname = rustix::system::uname();
    tell::say(&Line::Begin {
        release: uname.release().to_string_lossy().into_owned(),
        machine: uname.machine().to_string_lossy().into_owned(),
    });
    let only = setup::option(line, CHECKS).unwrap_or_default().replace('_', " ");
    let is_chosen = |name: &str| only.split(',').any(|begin| name.starts_with(begin));
    match setup::option(line, WORK).and_then(|name| Work::named(&name)).expect("work to do") {
        Work::Checks => checks::run(is_chosen),
        Work::Quick => checks::run(|name| checks::QUICK.contains(&name)),
        Work::Sizes => sizes::measure().context("cannot measure an agent").unwrap(),
    }
    tell::say(&Line::End);
}
