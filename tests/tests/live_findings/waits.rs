//! Sleep: of all tasks, or of some while cores are idle.

use jobtrace_tests::findings::{Case, Said, check, said_of};

use super::{computes, teaching};

/// Up to where the workers look for primes: several seconds of work on a fast machine, of which a tenth is crowded.
const LIMIT: &[&str] = &["2000000"];

pub const CASES: &[Case] = &[
    Case { rule: "all_asleep", speaks: || said_of(&["sleep", "1"]), silent: computes },
    Case {
        rule: "workers_wait",
        speaks: || teaching("straggler", LIMIT),
        silent: || teaching("straggler-mended", LIMIT),
    },
    Case { rule: "waiting_in_poll", speaks: || polls("1"), silent: || polls("200") },
    Case { rule: "waiting_for_locks", speaks: || locks("0.001"), silent: || locks("0.25") },
];

/// One process that is busy for three quarters of the time, and one for each core that waits in poll for so many
/// milliseconds at a time.
fn polls(ms: &str) -> Said {
    let script = "
import os, select, sys, time
end = time.monotonic() + 3
for core in range(os.cpu_count()):
    if os.fork() == 0:
        nothing = select.poll()
        while time.monotonic() < end:
            nothing.poll(int(sys.argv[1]))
        os._exit(0)
while time.monotonic() < end:
    turn = time.monotonic() + 0.03
    while time.monotonic() < turn:
        pass
    time.sleep(0.01)
for core in range(os.cpu_count()):
    os.wait()
";
    said_of(&["python3", "-c", script, ms])
}

/// Threads that hold a lock in turn, so many seconds each time, and compute for two thirds of these.
fn locks(seconds: &str) -> Said {
    let script = "
import os, sys, threading, time
held, end = float(sys.argv[1]), time.monotonic() + 4
lock = threading.Lock()
def work():
    while time.monotonic() < end:
        with lock:
            turn = time.monotonic() + held * 2 / 3
            while time.monotonic() < turn:
                pass
            time.sleep(held / 3)
threads = [threading.Thread(target=work) for core in range(2 * os.cpu_count())]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
";
    said_of(&["python3", "-c", script, seconds])
}

#[test]
fn each_rule_speaks_of_its_job_and_not_of_the_other() {
    check(CASES);
}
