//! Names of users, looked up on a thread of its own: a directory service that hangs must not hang the
//! agent.

use std::{
    collections::HashMap,
    sync::mpsc::{Receiver, Sender, TryRecvError, channel},
    thread,
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
        thread.context("cannot start the thread that looks users up")?;
        Ok(Self { names: HashMap::new(), ask, answers })
    }

    /// Name of `uid`, its number where it has none; `None` where the answer is still awaited: ask again.
    pub fn name(&mut self, uid: u32) -> Option<String> {
        loop {
            match self.answers.try_recv() {
                Ok((uid, name)) => drop(self.names.insert(uid, Some(name))),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Some(uid.to_string()),
            }
        }
        if let Some(known) = self.names.get(&uid) {
            return known.clone();
        }
        if self.names.len() >= MOST {
            self.names.clear();
        }
        self.names.insert(uid, None);
        let _ = self.ask.send(uid);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

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
}
