//! `run --top` on a terminal: who watches, what the command writes meanwhile, and the terminal afterwards.

use std::fs;

use crate::terminal::Shell;

/// Begins the alternate screen, and ends it.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";
/// A word of the view alone: of its last line.
const WATCHED: &str = "interrupt";

/// A shell that has begun to watch `command` under `jobtrace run --top`, with `more` after it.
fn watch(command: &str, more: &str) -> Shell {
    watch_as("", &format!("-- {command} {more}"))
}

/// The same with words of the shell before it, and options.
pub fn watch_as(before: &str, arguments: &str) -> Shell {
    let mut shell = Shell::start();
    shell.type_in("export TERM=xterm-256color; echo re''ady\n");
    shell.read_until("ready\r\n");
    shell.type_in(&format!("{before}\"$J\" run --top --interval 100ms {arguments}\n"));
    shell.read_until(ENTER);
    // The keys, and with the first reading what it does now.
    shell.read_until(WATCHED);
    shell.read_until("BLOCKED");
    shell
}

/// Sees that the terminal is as it was and ends the shell.
fn end(mut shell: Shell) {
    shell.type_in("stty -a | tr ' ' '\\n' | grep -cxE '(icanon|isig|echo|opost);?' | sed s/^/set=/; echo do''ne\n");
    assert!(shell.read_until("done\r\n").contains("set=4"));
    shell.exit();
}

#[test]
fn what_the_command_writes_is_kept_until_the_view_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let go_on = folder.path().join("go-on");
    let script = format!(
        "echo alpha''-out; test -t 0 || echo no in''put; until test -e {}; do sleep 0.1; done; echo omega''-out >&2; exit 7",
        go_on.display()
    );
    let mut shell = watch(&format!("sh -c {script:?}"), "");
    fs::write(&go_on, "").unwrap();
    let view = shell.read_until(LEAVE);
    assert!(!view.contains("alpha-out") && !view.contains("omega-out"), "{view}");
    let after = shell.read_until("In short");
    assert!(after.contains("alpha-out\r\nno input\r\nomega-out\r\n"), "{after}");
    assert!(
        after.find("omega-out") < after.find("exit status 7"),
        "the summary comes after it: {after}"
    );
    assert_eq!(shell.status(), 7);
    end(shell);
}

#[test]
fn who_closes_the_view_sees_what_the_command_goes_on_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let go_on = folder.path().join("go-on");
    let script = format!(
        "echo alpha''-out; until test -e {}; do sleep 0.1; done; echo omega''-out; sleep 600",
        go_on.display()
    );
    let mut shell = watch(&format!("sh -c {script:?}"), "");
    shell.type_in("q");
    shell.read_until(LEAVE);
    shell.read_until("alpha-out\r\n");
    fs::write(&go_on, "").unwrap();
    shell.read_until("omega-out\r\n");
    // It runs on, in the terminal's foreground.
    shell.type_in("\x03");
    shell.read_until("In short");
    assert_eq!(shell.status(), 130);
    end(shell);
}

#[test]
fn ctrl_c_in_the_view_and_a_signal_end_the_command_and_the_terminal_is_as_it_was() {
    let mut shell = watch("sleep 600", "");
    shell.type_in("\x03");
    shell.read_until(LEAVE);
    assert_eq!(shell.status(), 130);
    end(shell);
    let mut shell = watch("sleep 600", "");
    // SAFETY: the shell's child is jobtrace, which has not ended.
    assert_eq!(unsafe { libc::kill(shell.child(), libc::SIGTERM) }, 0);
    shell.read_until(LEAVE);
    assert_eq!(shell.status(), 143);
    end(shell);
}

#[test]
fn redirected_output_is_left_alone_and_a_command_that_is_not_there_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut shell = watch(
        "sh -c 'echo alpha-out; echo omega-out >&2; sleep 600'",
        &format!("> {}", log.display()),
    );
    assert_eq!(fs::read_to_string(&log).unwrap(), "alpha-out\n");
    shell.type_in("\x03");
    shell.read_until(LEAVE);
    let after = shell.read_until("In short");
    assert!(after.contains("omega-out\r\n") && !after.contains("alpha-out\r\n"), "{after}");
    end(shell);
    let mut shell = Shell::start();
    shell.type_in("export TERM=xterm-256color; \"$J\" run --top -- no-such-program\n");
    shell.read_until(LEAVE);
    shell.read_until("jobtrace: no-such-program: command not found");
    assert_eq!(shell.status(), 127);
    end(shell);
}
