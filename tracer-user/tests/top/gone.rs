//! A terminal that goes away without a word, takes nothing any more, or sends half a key.

use std::{
    os::unix::process::CommandExt,
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use crate::{
    agent::{Agent, job},
    terminal::Terminal,
    view::{PATIENCE, View, of_terminal},
};

/// `jobtrace top` leading a session on a terminal, deaf to SIGHUP, as the kernel tells it nothing where another leads.
fn top(agent: &Agent, rows: u16, columns: u16) -> Terminal {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jobtrace"));
    command.args(["top", "--interval", "500ms", "--socket"]).arg(agent.socket());
    // SAFETY: both calls are async-signal-safe, and the set is initialised by the first.
    unsafe {
        command.pre_exec(|| {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGHUP);
            libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            Ok(())
        })
    };
    Terminal::start_sized(of_terminal(&mut command), rows, columns)
}

/// Waits for the end, and sees to it that there is one; gives the exit status.
fn end(child: &mut Child) -> Option<i32> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if begin.elapsed() > PATIENCE {
            child.kill().and_then(|()| child.wait()).unwrap();
            panic!("it never ended");
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// So many that no terminal's buffer holds them.
fn crowd() -> Agent {
    Agent::start((0..400).map(|at| job(&format!("4711{at:04}"), 2, 1, 0)).collect())
}

#[test]
fn a_terminal_that_is_gone_ends_it_as_a_hang_up_does() {
    // While it waits for a key.
    let agent = Agent::start(vec![job("4711", 90, 3, 1)]);
    let mut terminal = top(&agent, 24, 80);
    terminal.read_until("quit");
    assert_eq!(end(&mut terminal.hang_up()), Some(129));
    // In the middle of a picture.
    let crowd = crowd();
    let mut terminal = top(&crowd, 450, 200);
    terminal.read_until("47110000");
    assert_eq!(end(&mut terminal.hang_up()), Some(129));
}

#[test]
fn a_terminal_that_takes_nothing_does_not_hold_a_signal_up() {
    let crowd = crowd();
    let mut terminal = top(&crowd, 450, 200);
    // The rest of the picture is never read.
    terminal.read_until("47110000");
    // SAFETY: a process of ours that has not ended.
    assert_eq!(unsafe { libc::kill(terminal.child.id() as i32, libc::SIGTERM) }, 0);
    assert_eq!(end(&mut terminal.child), Some(143));
}

#[test]
fn half_a_key_holds_nothing_up() {
    let agent = Agent::start(vec![job("4711", 90, 3, 1), job("4712", 60, 1, 3)]);
    let mut view =
        View::top(&format!("--interval 500ms --socket {}", agent.socket().display()), 24, 80);
    view.wait_for_words("2 jobs run");
    // As Alt-[ sends: the begin of many keys.
    view.type_in("\x1b[");
    agent.jobs.lock().unwrap().remove(0);
    view.wait_for_words("1 job runs");
    view.signal(libc::SIGTERM);
    assert!(view.end().contains("status=143"));
}

#[test]
fn standard_input_that_is_closed_leaves_the_keys_to_the_terminal() {
    let agent = Agent::start(vec![job("4711", 90, 3, 1)]);
    let mut view = View::top(&format!("--socket {} <&-", agent.socket().display()), 24, 80);
    view.wait_for_words("4711");
    view.type_in("q");
    assert!(view.end().contains("status=0"));
}
