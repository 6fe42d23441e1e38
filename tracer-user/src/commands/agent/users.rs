//! Names of users, looked up on a thread of its own: a directory service that hangs must not hang the
//! agent.

use std::{
    collections::HashMap,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

/// Names that are kept; past it all are asked for anew.
const MOST: usize = 10_000;

/// The names known so far.
pub struct Users {
    /// `None` while the answer is awaited.
    names: HashMap<u32, Option<String>>,
    ask: Sender<u32>,
    answers: Receiver<(u32, String)>,
    /// Answers to wait for.
    awaited: usize,
}

impl Users {
    /// Starts the thread, which ends with the value.
    ///
    /// # Errors
    /// When there can be no thread.
    pub fn start() -> Result<Self> {
        let (ask, questions) = channel::<u32>();
        let (answer, answers) = channel();
        let look_up = move || {
            for uid in questions {
                let user = uzers::get_user_by_uid(uid);
                let name = user.map(|user| user.name().to_string_lossy().into_owned());
                if answer.send((uid, name.unwrap_or_else(|| uid.to_string()))).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("users".into()).spawn(look_up);
        thread.context("cannot start the thread that looks up users")?;
        Ok(Self { names: HashMap::new(), ask, answers, awaited: 0 })
    }

    /// Has the name of `uid` looked up, where it is not known.
    pub fn ask(&mut self, uid: u32) {
        if self.names.contains_key(&uid) {
            return;
        }
        if self.names.len() >= MOST {
            self.names.clear();
            self.awaited = 0;
        }
        self.names.insert(uid, None);
        self.awaited += usize::from(self.ask.send(uid).is_ok());
    }

    /// Waits for the names asked for since the last call, `patience` at most; a directory that is slower
    /// is not waited for again.
    pub fn wait(&mut self, patience: Duration) {
        let begin = Instant::now();
        while self.awaited > 0 {
            let left = patience.saturating_sub(begin.elapsed());
            match self.answers.recv_timeout(left) {
                Ok((uid, name)) => {
                    self.names.insert(uid, Some(name));
                    self.awaited -= 1;
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        self.awaited = 0;
    }

    /// Name of `uid`, its number where it has none; `None` where the answer is still awaited: ask again.
    pub fn name(&mut self, uid: u32) -> Option<String> {
        for (uid, name) in self.answers.try_iter() {
            self.names.insert(uid, Some(name));
            self.awaited = self.awaited.saturating_sub(1);
        }
        self.ask(uid);
        self.names.get(&uid).cloned().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_sooner_or_later_and_a_stranger_is_a_number() {
        let mut users = Users::start().unwrap();
        for (uid, expected) in [(0, "root"), (3_999_999_998, "3999999998")] {
            let name = (0..500).find_map(|_| {
                thread::sleep(Duration::from_millis(10));
                users.name(uid)
            });
            assert_eq!(name.as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_name_asked_for_is_waited_for_once() {
        let mut users = Users::start().unwrap();
        users.ask(0);
        users.wait(Duration::from_secs(10));
        assert_eq!(users.name(0).as_deref(), Some("root"));
        let begin = Instant::now();
        users.ask(0);
        users.wait(Duration::from_secs(10));
        assert!(begin.elapsed() < Duration::from_secs(5), "nothing is awaited");
    }
}
