//! Watched on a terminal.

use std::sync::Arc;

use jobtrace::{
    screen::{Screen, Stream},
    view::Style,
};

use crate::{
    agent::{Agent, job},
    view::View,
};

/// One that computes, one that is blocked, one that sleeps.
fn agent() -> Agent {
    Agent::start(vec![job("4711", 90, 3, 1), job("4712", 60, 1, 3), job("4713", 5, 0, 0)])
}

fn top(agent: &Agent, rows: u16, columns: u16) -> View {
    View::top(&format!("--interval 500ms --socket {}", agent.socket().display()), rows, columns)
}

/// The jobs on the screen, in their order.
fn jobs(lines: &[String]) -> Vec<&str> {
    lines
        .iter()
        .filter_map(|line| line.split(' ').next())
        .filter(|word| word.starts_with("471"))
        .collect()
}

#[test]
fn on_80_by_24_jobs_are_sorted_and_looked_into() {
    let agent = agent();
    let mut view = top(&agent, 24, 80);
    let lines = view.wait_for_words("4713");
    assert_eq!(lines[0], "jobtrace  3 jobs run, by cpu");
    assert_eq!(lines[1], "JOB   USER  CORES  ON CPU  WAITING  BLOCKED  MEMORY      TIME  NAME");
    assert_eq!(lines[2], "4711  ada     3/4    75 %      0 %     25 %   1 GiB  1.50 min  name4711");
    assert_eq!(lines[4], "4713  ada     0/4     0 %      0 %      0 %   1 GiB    5.00 s  name4713");
    assert_eq!(
        lines[23],
        "q quit  Enter details  by: c cpu w waiting b blocked m memory d disk n net g gp…"
    );
    view.type_in("b");
    let lines = view.wait_for_words("3 jobs run, by blocked");
    assert_eq!(jobs(&lines), ["4712", "4711", "4713"]);
    // The second, in detail.
    view.type_in("\x1b[B\r");
    let lines = view.wait_for_words("slurm job 4711 of ada");
    assert!(
        lines[0].starts_with("jobtrace  job 4711, ") && lines[0].ends_with(" lines further down"),
        "{lines:?}"
    );
    assert_eq!(lines[1], "name4711 had not ended after 1 min 30 s");
    view.type_in("\x1b[6~\x1b[6~");
    // Three cores of four.
    view.wait_for("its course", |lines| {
        lines.iter().any(|line| line.starts_with("  Cores     ▆▆▆▆"))
    });
    view.type_in("\x1b");
    let lines = view.wait_for_words("3 jobs run");
    assert_eq!(jobs(&lines), ["4712", "4711", "4713"]);
    // What comes and goes.
    agent.jobs.lock().unwrap().remove(0);
    view.wait_for("without it", |lines| jobs(lines) == ["4712", "4713"]);
    view.type_in("q");
    assert!(view.end().contains("status=0"));
}

#[test]
fn on_40_by_10_it_says_less_and_more_when_there_is_room() {
    let mut all: Vec<_> = (0..15).map(|at| job(&format!("47{at:02}"), 10, 1, 0)).collect();
    all.push(job("4799", 10, 4, 0));
    let agent = Agent::start(all);
    let mut view = top(&agent, 10, 40);
    let lines = view.wait_for_words("4799");
    assert_eq!(lines[0], "jobtrace  16 jobs run, by cpu, 9 furthe…");
    assert_eq!(lines[1], "JOB   CORES  ON CPU  WAITING  BLOCKED");
    assert_eq!(lines[2], "4799    4/4   100 %      0 %      0 %");
    assert_eq!(lines[9], "q quit  Enter details  by: c cpu w wait…");
    // To the last one: the window follows.
    view.type_in("\x1b[F");
    let lines = view.wait_for_words("4714");
    assert!(
        lines[8].starts_with("4714 ") && lines[0] == "jobtrace  16 jobs run, by cpu",
        "{lines:?}"
    );
    view.resize(24, 80);
    // The keys come last.
    let lines = view.wait_for("wider", |lines| lines.len() == 24 && lines[23].contains("q quit"));
    assert!(
        lines[2].starts_with("4799  ada ") && lines[17].starts_with("4714 "),
        "all of them: {lines:?}"
    );
    view.resize(3, 20);
    view.wait_for("tiny", |lines| lines[0] == "jobtrace  16 jobs r…");
    view.resize(1, 1);
    view.resize(10, 40);
    view.wait_for("as before", |lines| lines[9].starts_with("q quit"));
    view.type_in("\r");
    view.wait_for_words("job 47");
    // For the shell's words.
    view.resize(40, 80);
    view.type_in("q");
    assert!(view.end().contains("status=0"));
}

#[test]
fn signals_end_it_and_leave_the_terminal_as_it_was() {
    let agent = agent();
    for (signal, status) in [(libc::SIGTERM, 143), (libc::SIGINT, 130), (libc::SIGHUP, 129)] {
        let view = top(&agent, 24, 80);
        view.wait_for_words("4711");
        view.signal(signal);
        assert!(view.end().contains(&format!("status={status}")));
    }
    let mut view = top(&agent, 24, 80);
    view.wait_for_words("4711");
    view.type_in("\x03");
    assert!(view.end().contains("status=0"), "Ctrl-C is a key");
}

const PANIC: &str = "JOBTRACE_TEST_PANIC";

#[test]
fn a_panic_leaves_the_terminal_as_it_was() {
    if std::env::var_os(PANIC).is_some() {
        let style = Style { width: 80, color: true, unicode: true };
        let _screen = Screen::open(Stream::Output, style, Arc::new(|_| false)).unwrap();
        panic!("on purpose");
    }
    let own = std::env::current_exe().unwrap();
    let test = "watched::a_panic_leaves_the_terminal_as_it_was";
    let script = format!("{PANIC}=1 RUST_BACKTRACE=0 {} --exact {test} --nocapture", own.display());
    let said = View::start(&script, 40, 80).end();
    assert!(said.contains("on purpose") && said.contains("status=101"), "{said}");
}

#[test]
fn an_agent_that_is_away_is_told_of_until_it_is_back() {
    let mut agent = agent();
    let mut view = top(&agent, 24, 80);
    view.wait_for_words("4711");
    agent.end();
    let lines = view.wait_for_words("no running jobs: is the agent running");
    assert_eq!(jobs(&lines), ["4711", "4712", "4713"], "what was known stays");
    agent.begin();
    view.wait_for("well", |lines| lines[1].starts_with("JOB ") && jobs(lines).len() == 3);
    view.type_in("q");
    assert!(view.end().contains("status=0"));
}
