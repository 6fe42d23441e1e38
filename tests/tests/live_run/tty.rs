//! A real terminal: Ctrl-C, Ctrl-Z with `fg`, a command that reads what is typed.

use std::fs;

use crate::{
    program::{JOB, wait_for},
    terminal::Shell,
};

/// States of the processes of a group, as /proc/PID/stat has them, in the alphabet's order.
fn states_of(group: i32) -> String {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|pid| fs::read_to_string(pid.path().join("stat")).ok());
    let state = |stat: String| {
        // `12 (a name) T parent group …`
        let mut fields = stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned);
        let state = fields.next()?;
        (fields.nth(1)?.parse() == Ok(group)).then_some(state)
    };
    let mut states: Vec<_> = stats.filter_map(state).collect();
    states.sort();
    states.concat()
}

#[test]
fn ctrl_c_reaches_the_command_once_and_the_summary_is_printed() {
    let mut shell = Shell::start();
    shell.type_in(&format!("\"$J\" run -- {JOB} signals\n"));
    shell.read_until("ready\r\n");
    shell.type_in("\x03");
    let printed = shell.read_until("Where the time went");
    assert_eq!(printed.matches("had ").count(), 1, "{printed}");
    assert!(printed.contains("had 2\r\n"), "{printed}");
    shell.read_until("Tracing ");
    assert_eq!(shell.status(), 130);
    shell.exit();
}

#[test]
fn ctrl_z_stops_both_and_fg_goes_on() {
    let mut shell = Shell::start();
    shell.type_in(&format!("\"$J\" run -- {JOB} signals\n"));
    shell.read_until("ready\r\n");
    shell.type_in("\x1a");
    shell.read_until("Stopped");
    shell.read_until("$ ");
    // Both are stopped, the witness of the group's signals sleeps on, and the terminal is the shell's.
    shell.type_in("echo group=$(jobs -p).\n");
    shell.read_until("$(jobs -p)");
    shell.read_until("group=");
    let group: i32 = shell.read_until(".").trim_end_matches('.').parse().unwrap();
    assert_eq!(states_of(group), "STT");
    shell.type_in("fg\n");
    shell.read_until(" signals\r\n");
    // The shell prints that first, hands the terminal over and only then continues the group.
    wait_for("the group to go on", || (!states_of(group).contains('T')).then_some(()));
    shell.type_in("\x03");
    let printed = shell.read_until("Where the time went");
    assert!(printed.contains("had 2\r\n"), "{printed}");
    shell.read_until("Tracing ");
    assert_eq!(shell.status(), 130);
    shell.exit();
}

#[test]
fn a_command_reads_what_is_typed() {
    let mut shell = Shell::start();
    shell.type_in("\"$J\" run -- sh -c 'echo asking; read word; echo \"<$word>\"; exit 9'\n");
    shell.read_until("asking\r\n");
    shell.type_in("some words\n");
    shell.read_until("<some words>\r\n");
    // On a terminal the summary may be coloured.
    shell.read_until("Where the time went");
    shell.read_until("Tracing ");
    assert_eq!(shell.status(), 9);
    shell.exit();
}
