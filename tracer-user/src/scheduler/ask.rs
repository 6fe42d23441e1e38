//! Running a scheduler's command: no shell, a deadline, a bound on what it may say.

use std::{
    io::{ErrorKind, Read},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Instant,
};

use rustix::process::{Pid, Signal, kill_process_group};

/// Most that an answer may have; one job takes some kB.
const MOST_BYTES: u64 = 256 << 10;
/// Most of a complaint that is shown.
const MOST_CHARS: usize = 200;

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// There is no such program.
    NotInstalled,
    /// It did not answer; why, to go on from its name.
    Refused(String),
    /// What it printed.
    Text(String),
}

/// Runs `program`, which is looked for in PATH, up to `until`.
pub fn run(
    program: &str,
    words: &[String],
    environment: &[(&str, &str)],
    until: Instant,
) -> Answer {
    let mut command = Command::new(program);
    command.args(words).env("LC_ALL", "C").envs(environment.iter().copied());
    // A group of its own: a wrapper's children are ended with it.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => return Answer::NotInstalled,
        Err(error) => return Answer::Refused(format!("cannot be started: {error}")),
    };
    let text = child.stdout.take().map(read);
    let complaint = child.stderr.take().map(read);
    let both =
        text.zip(complaint).map(|(text, complaint)| (wait(&text, until), wait(&complaint, until)));
    let Some((Some(text), Some(complaint))) = both else {
        end(&mut child);
        return Answer::Refused("did not answer in time".to_owned());
    };
    if text.len() as u64 > MOST_BYTES {
        end(&mut child);
        return Answer::Refused("answered more than a job's worth".to_owned());
    }
    // Its pipes are closed: it ends now, or is ended.
    let status = loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < until => {
                thread::sleep(std::time::Duration::from_millis(1))
            }
            Ok(Some(status)) => break status,
            _ => {
                end(&mut child);
                return Answer::Refused("did not end in time".to_owned());
            }
        }
    };
    let text = String::from_utf8_lossy(&text).into_owned();
    if status.success() {
        return Answer::Text(text);
    }
    let complaint = String::from_utf8_lossy(&complaint);
    let line = complaint.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    let line: String = line.trim().chars().take(MOST_CHARS).collect();
    Answer::Refused(if line.is_empty() {
        format!("failed, {status}")
    } else {
        format!("says: {line}")
    })
}

/// All that comes from `pipe`, up to a byte more than is accepted, once it is there.
fn read(pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (done, all) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.take(MOST_BYTES + 1).read_to_end(&mut bytes);
        // Who waited may have given up.
        let _ = done.send(bytes);
    });
    all
}

fn wait(all: &Receiver<Vec<u8>>, until: Instant) -> Option<Vec<u8>> {
    all.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
}

/// Ends it with its children, and leaves no zombie.
fn end(child: &mut Child) {
    if let Some(group) = Pid::from_raw(child.id() as i32) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn sh(script: &str, patience: Duration) -> Answer {
        let words = ["-c".to_owned(), script.to_owned()];
        run("sh", &words, &[("SEEN", "it")], Instant::now() + patience)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn an_answer_a_refusal_and_no_such_program() {
        assert_eq!(sh("echo $LC_ALL $SEEN", LONG), Answer::Text("C it\n".into()));
        let refused = |why: &str| Answer::Refused(why.into());
        assert_eq!(sh("echo no >&2; echo job 7? >&2; exit 3", LONG), refused("says: job 7?"));
        assert_eq!(sh("exit 3", LONG), refused("failed, exit status: 3"));
        let none = run("/nonexistent/sacct", &[], &[], Instant::now() + LONG);
        assert_eq!(none, Answer::NotInstalled);
    }

    #[test]
    fn who_does_not_answer_is_ended_with_its_children() {
        let begin = Instant::now();
        let answer = sh("sleep 600 & sleep 600", Duration::from_millis(200));
        assert_eq!(answer, Answer::Refused("did not answer in time".into()));
        let silent = sh("exec >&- 2>&-; sleep 600", Duration::from_millis(200));
        assert_eq!(silent, Answer::Refused("did not end in time".into()));
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    }

    #[test]
    fn who_answers_without_end_is_cut() {
        let answer = sh("yes | head -c 10000000", LONG);
        assert_eq!(answer, Answer::Refused("answered more than a job's worth".into()));
        // An endless complaint is no answer either; its first part is read.
        let Answer::Refused(why) = sh("yes x | head -c 10000000 >&2; exit 1", LONG) else {
            panic!("it failed")
        };
        assert!(why.starts_with("says: x") || why.starts_with("failed"), "{why}");
    }
}
