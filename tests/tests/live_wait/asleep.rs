//! Sleeps by choice, of one cause each.

use crate::{found, of_one_cause};
use jobtrace_tests::agree::tried_again;

#[test]
fn for_a_clock() {
    of_one_cause("timer", "sleep_timer");
}

#[test]
fn for_a_futex_that_nobody_wakes() {
    of_one_cause("futex", "sleep_lock");
}

#[test]
fn for_threads_that_hold_a_mutex() {
    tried_again(|| {
        let found = found("contention", "", "");
        let mut agree = found.adds_up();
        found.is_all(&mut agree, &["sleep_lock"]);
        agree.end();
    });
}

#[test]
fn for_a_process_that_holds_a_file_locked() {
    of_one_cause("flock", "sleep_lock");
}

#[test]
fn for_any_of_several_files() {
    of_one_cause("poll", "sleep_poll");
}

#[test]
fn for_a_silent_socket() {
    of_one_cause("socket", "sleep_socket");
}

#[test]
fn for_the_other_end_of_a_pipe() {
    of_one_cause("pipe", "sleep_pipe");
}

#[test]
fn for_children() {
    of_one_cause("child", "sleep_child");
}

#[test]
fn for_signals() {
    of_one_cause("signal", "sleep_signal");
    of_one_cause("pause", "sleep_signal");
}

#[test]
fn for_messages_and_semaphores() {
    for name in ["semaphore", "message", "mq"] {
        of_one_cause(name, "sleep_message");
    }
}

#[test]
fn for_completions() {
    of_one_cause("ring", "sleep_ring");
    of_one_cause("aio", "sleep_ring");
}
