//! Sleeps by choice, of one cause each.

use crate::{of_one_cause, of_others};

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
    of_others("contention", "sleep_lock");
}

#[test]
fn for_a_process_that_holds_a_file_locked() {
    of_others("flock", "sleep_lock");
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
    of_others("pipe", "sleep_pipe");
    of_others("preadv2", "sleep_pipe");
}

/// The file that fills it is not what is waited for.
#[test]
fn for_room_in_a_pipe() {
    of_others("splice", "sleep_pipe");
}

#[test]
fn for_children() {
    of_others("child", "sleep_child");
}

#[test]
fn for_signals() {
    of_one_cause("signal", "sleep_signal");
    of_one_cause("pause", "sleep_signal");
}

#[test]
fn for_messages_and_semaphores() {
    of_one_cause("semaphore", "sleep_message");
    of_one_cause("mq", "sleep_message");
    of_others("message", "sleep_message");
}

#[test]
fn for_completions() {
    of_one_cause("ring", "sleep_ring");
    of_one_cause("aio", "sleep_ring");
}
