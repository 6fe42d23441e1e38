//! One client who has the file operations of a job counted: who may, one at a time, and what it is told.

use std::{
    path::Path,
    sync::{Arc, mpsc::channel},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tokio::{
    net::UnixStream,
    sync::{mpsc::unbounded_channel, watch},
    time::sleep,
};

use super::{
    Ask, Caller, PAUSE, Server,
    place::{Refused, Turn},
};
use crate::{
    base::values::Time,
    commands::agent::query::{
        Used,
        dive::{Dive, Told, Why, whole},
    },
    record::running::{LONGEST_IO, SHORTEST_IO, answer_records, answer_so_far},
};

/// How long root waits for another user's counting to end: loading comes to its end first.
const HANDING_OVER: Duration = Duration::from_secs(30);

impl Server {
    /// Counts the file operations of `job` for `most`, until the job or the agent ends or the client says no more; the
    /// answer.
    pub(super) async fn dive(
        &self,
        caller: Caller,
        job: String,
        most: Duration,
        stream: &UnixStream,
        ending: &mut watch::Receiver<bool>,
    ) -> Result<Vec<u8>> {
        ensure!(
            (SHORTEST_IO..=LONGEST_IO).contains(&most),
            "file operations can be counted for {} to {}",
            Time(SHORTEST_IO),
            Time(LONGEST_IO)
        );
        let subject = self.ask(|answer| Ask::Subject(job, caller, answer)).await??;
        let turn = self.turn(caller, most).await?;
        let (record, root) = (subject.record.clone(), subject.root.clone());
        let (stop, stopped) = channel();
        let (tell, mut told) = unbounded_channel();
        let log = Arc::clone(&self.log);
        Dive { subject, caller, most, log }.start(turn, stopped, tell)?;
        let (mut before, mut found) = (None, None);
        let (mut is_heard, mut is_ending) = (true, false);
        loop {
            let told = tokio::select! {
                told = told.recv() => told.context("the thread that counts has failed")?,
                () = said(stream), if is_heard => {
                    is_heard = false;
                    // It may be over already.
                    let _ = stop.send(Why::Caller);
                    continue;
                }
                _ = ending.wait_for(|ends| *ends), if !is_ending => {
                    is_ending = true;
                    let _ = stop.send(Why::Agent);
                    continue;
                }
            };
            match told {
                Told::Began => before = Some(self.used(&root).await?),
                Told::SoFar(so_far) => {
                    // Whoever does not read it finds out at the end.
                    let _ = stream.try_write(&answer_so_far(so_far)?);
                }
                // While it is detached.
                Told::Counted(counted) => {
                    found = Some((counted, self.used(&root).await?));
                    // What is loaded goes with the agent.
                    if is_ending {
                        break;
                    }
                }
                Told::Ended(ended) => break ended?,
            }
        }
        let (counted, after) = found.context("nothing was counted")?;
        answer_records(&[whole(record, &before.context("it never began")?, &after, *counted)])
    }

    /// The place, when it is `caller`'s turn: root's is as soon as another user's counting has ended.
    async fn turn(&self, caller: Caller, most: Duration) -> Result<Turn> {
        let begin = Instant::now();
        loop {
            match self.place.take(caller, Instant::now(), most) {
                Ok(turn) => return Ok(turn),
                Err(Refused::Told(why)) => bail!(why),
                Err(Refused::Soon) if begin.elapsed() < HANDING_OVER => sleep(PAUSE).await,
                Err(Refused::Soon) => bail!(
                    "another user's counting of file operations does not end: try again in {}",
                    Time(HANDING_OVER)
                ),
            }
        }
    }

    async fn used(&self, root: &Path) -> Result<Used> {
        self.ask(|answer| Ask::Used(root.to_owned(), answer)).await
    }
}

/// Waits until the client says something more, or has gone: it wants no more to be counted.
async fn said(stream: &UnixStream) {
    let would_block = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    while stream.readable().await.is_ok() {
        match stream.try_read(&mut [0; 64]) {
            Err(error) if would_block(&error) => {}
            _ => return,
        }
    }
}
