//! The clients: a few at a time, each with a deadline, none trusted.

use std::{
    collections::BTreeMap,
    io::{self, ErrorKind},
    rc::Rc,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use tokio::{
    net::{UnixListener, UnixStream},
    select,
    sync::{Mutex as Asking, Semaphore, mpsc, oneshot, watch},
    task::LocalSet,
    time::{Instant, sleep, sleep_until, timeout, timeout_at},
};

mod dive;
mod place;

pub use place::Turn;

use super::{Ask, Caller, RunningHeads};
use crate::{
    commands::agent::log::Log,
    record::{
        Record,
        running::{LONGEST_REQUEST_BYTES, Request, answer_error, answer_heads, answer_records},
    },
};

/// Clients at the same time, of all users and of one.
const MOST_CLIENTS: usize = 16;
const MOST_OF_A_USER: usize = 4;
/// For a client's question, the answer and its reading that, all together; counting file operations has a time of its
/// own in between.
const DEADLINE: Duration = Duration::from_secs(5);
/// Clients taken on, one after the other, and how many sooner than that.
const PACE: Duration = Duration::from_millis(4);
const AT_ONCE: u32 = 64;
/// Between two questions to the loop.
const PAUSE: Duration = Duration::from_millis(50);

/// What all clients share.
pub(super) struct Server {
    /// Who has it may ask the loop.
    ask: Asking<mpsc::Sender<Ask>>,
    /// The same, to see whether the loop is there: who looks does not wait for those who ask.
    asked: mpsc::Sender<Ask>,
    interval: Arc<AtomicU64>,
    group: Option<u32>,
    /// The heads of an interval.
    heads: Mutex<Option<(u64, Arc<RunningHeads>)>>,
    /// Clients now, by user.
    clients: Mutex<BTreeMap<u32, usize>>,
    /// Who has the file operations of a job counted.
    place: place::Place,
    /// Whether the agent ends; those who count listen until they are answered.
    ending: watch::Sender<bool>,
    log: Arc<Log>,
}

impl Server {
    pub fn new(
        ask: mpsc::Sender<Ask>,
        interval: Arc<AtomicU64>,
        group: Option<u32>,
        ending: watch::Sender<bool>,
        log: Arc<Log>,
    ) -> Self {
        let (heads, clients, place) = (Mutex::default(), Mutex::default(), place::Place::default());
        let asked = ask.clone();
        Self { ask: Asking::new(ask), asked, interval, group, heads, clients, place, ending, log }
    }

    /// Serves whoever comes, until the loop is gone.
    pub async fn serve(self, listener: UnixListener) {
        let (server, local) = (Rc::new(self), LocalSet::new());
        let places = Arc::new(Semaphore::new(2 * MOST_CLIENTS));
        let serving = async {
            let mut paid = Instant::now();
            loop {
                // Each holds a descriptor of the agent's: further ones wait in the kernel.
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                // Who comes and goes without end has the agent spend no more than this on it.
                paid = paid.max(Instant::now()) + PACE;
                if let Some(due) = paid.checked_sub(PACE * AT_ONCE) {
                    sleep_until(due).await;
                }
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let server = Rc::clone(&server);
                        local.spawn_local(async move {
                            let _place = place;
                            server.client(stream).await;
                        });
                    }
                    // Out of descriptors, say.
                    Err(_) => sleep(PAUSE).await,
                }
            }
        };
        // No clock: a thread that nobody asks is never woken.
        let until_gone = async {
            select! {
                () = serving => {}
                () = server.asked.closed() => {}
            }
        };
        local.run_until(until_gone).await;
    }

    async fn client(&self, stream: UnixStream) {
        let Ok(caller) = Caller::of(&stream, self.group) else { return };
        let held = self.enter(caller.uid);
        let mut deadline = Instant::now() + DEADLINE;
        let mut counting = None;
        let answer = match &held {
            Some(_) => {
                // A client that is late has its own deadline to blame.
                let Ok(line) = timeout_at(deadline, read_line(&stream)).await else { return };
                match line.and_then(|line| Request::parse(&line)) {
                    Ok(Request::Io { job, for_ns }) => {
                        let most = Duration::from_nanos(for_ns);
                        let ending = counting.insert(self.ending.subscribe());
                        let answer = self.dive(caller, job, most, &stream, ending).await;
                        deadline = Instant::now() + DEADLINE;
                        answer
                    }
                    Ok(request) => {
                        let answer = timeout_at(deadline, self.at_once(caller, request)).await;
                        let Ok(answer) = answer else { return };
                        answer
                    }
                    Err(error) => Err(error),
                }
            }
            None => {
                // What was not read would take the answer with it as the connection ends.
                let _ = timeout(PAUSE, read_line(&stream)).await;
                Err(anyhow!("too many ask at once: try again"))
            }
        };
        let line = answer.unwrap_or_else(|error| answer_error(&error));
        let _ = timeout_at(deadline, write_all(&stream, &line)).await;
    }

    /// The answer to what needs no waiting.
    async fn at_once(&self, caller: Caller, request: Request) -> Result<Vec<u8>> {
        match request {
            Request::Heads {} => {
                let all = self.heads().await?;
                let own = all.iter().filter(|(owner, _)| caller.may_see(*owner));
                answer_heads(own.map(|(_, head)| head.clone()).collect())
            }
            Request::Record { job } => {
                let records: Vec<Record> =
                    self.ask(|answer| Ask::Records(job, caller, answer)).await?;
                answer_records(&records)
            }
            Request::Io { .. } => bail!("counting takes its time"),
        }
    }

    /// The heads of all running jobs, asked for once an interval.
    async fn heads(&self) -> Result<Arc<RunningHeads>> {
        let interval = self.interval.load(Ordering::Acquire);
        let known = || {
            let known = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
            known.as_ref().filter(|(of, _)| *of == interval).map(|(_, heads)| Arc::clone(heads))
        };
        if let Some(heads) = known() {
            return Ok(heads);
        }
        let heads = Arc::new(self.ask(Ask::Heads).await?);
        *self.heads.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((interval, Arc::clone(&heads)));
        Ok(heads)
    }

    /// Asks the loop, when it is this client's turn.
    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T> {
        let turn = self.ask.lock().await;
        let (give, answer) = oneshot::channel();
        let ends = "the agent has ended meanwhile, and what it had counted is lost: ask again when it runs";
        turn.send(question(give)).await.ok().context(ends)?;
        let answer = answer.await.ok().context(ends)?;
        sleep(PAUSE).await;
        Ok(answer)
    }

    /// A place among the clients, while it is held.
    fn enter(&self, uid: u32) -> Option<Place<'_>> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.values().sum::<usize>() >= MOST_CLIENTS {
            return None;
        }
        let own = clients.entry(uid).or_default();
        if *own >= MOST_OF_A_USER {
            return None;
        }
        *own += 1;
        Some(Place { clients: &self.clients, uid })
    }
}

struct Place<'a> {
    clients: &'a Mutex<BTreeMap<u32, usize>>,
    uid: u32,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = clients.get_mut(&self.uid) {
            *count -= 1;
            if *count == 0 {
                clients.remove(&self.uid);
            }
        }
    }
}

/// A line, without its line feed.
async fn read_line(stream: &UnixStream) -> Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut piece = [0; 512];
    let cannot = "cannot read the request";
    loop {
        stream.readable().await.context(cannot)?;
        let count = match stream.try_read(&mut piece) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            read => read.context(cannot)?,
        };
        if count == 0 {
            bail!("the request has no line feed");
        }
        if let Some(end) = piece[..count].iter().position(|byte| *byte == b'\n') {
            line.extend(&piece[..end]);
            return Ok(line);
        }
        line.extend(&piece[..count]);
        ensure!(line.len() <= LONGEST_REQUEST_BYTES, "the request is too long");
    }
}

async fn write_all(stream: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            written => bytes = &bytes[written?..],
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
