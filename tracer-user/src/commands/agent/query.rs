//! Questions about running jobs, at a socket. They come through a thread of its own, so that no client costs a
//! reading; what it cannot know it asks the measuring loop, at most twenty times a second.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use anyhow::{Context, Result};
use tokio::{
    net::UnixListener,
    sync::{mpsc, oneshot, watch},
};

mod caller;
mod dive;
mod server;

pub use caller::Caller;
pub use dive::{Subject, Used};

use super::log::Log;
use crate::record::{Record, head::Head, running::SOCKET};

/// The group that is told of all jobs.
const GROUP: &str = "jobtrace";
/// Clients that the kernel keeps waiting, before others wait in their own call.
const QUEUE: i32 = 64;

/// The heads of the jobs that run, with their owners where they are known.
pub type RunningHeads = Vec<(Option<u32>, Head)>;

/// What the loop is asked.
pub enum Ask {
    /// The heads of all running jobs, with their owners.
    Heads(oneshot::Sender<RunningHeads>),
    /// The records of the running job of that id that the caller may know of.
    Records(String, Caller, oneshot::Sender<Vec<Record>>),
    /// What is to be counted for a caller who wants the file operations of the running job of that id.
    Subject(String, Caller, oneshot::Sender<Result<Subject>>),
    /// What the job in that topmost directory has used up to now.
    Used(PathBuf, oneshot::Sender<Used>),
}

/// The loop's side.
pub struct Queries {
    asks: mpsc::Receiver<Ask>,
    /// Counts intervals: what was told of one holds until the next.
    interval: Arc<AtomicU64>,
    ending: watch::Sender<bool>,
    path: PathBuf,
}

impl Queries {
    /// Listens in the folder `dir`, in place of an agent before this one. What is worth knowing goes into `log`.
    ///
    /// # Errors
    /// When the socket cannot be made, or there can be no thread.
    pub fn start(dir: &Path, log: &Arc<Log>) -> Result<Self> {
        let path = dir.join(SOCKET);
        let cannot = || format!("nobody can ask about running jobs at {}", path.display());
        // The lock in that folder says that it is nobody else's.
        let _ = fs::remove_file(&path);
        let listener = std::os::unix::net::UnixListener::bind(&path).with_context(cannot)?;
        listener.set_nonblocking(true).with_context(cannot)?;
        // Once more, with a shorter queue: who waits behind a flood waits for these alone.
        rustix::net::listen(&listener, QUEUE).with_context(cannot)?;
        // Who may know what is decided by who asks.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).with_context(cannot)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.with_context(cannot)?;
        let (ask, asks) = mpsc::channel(1);
        let interval = Arc::new(AtomicU64::new(0));
        let group = uzers::get_group_by_name(GROUP).map(|group| group.gid());
        let ending = watch::Sender::new(false);
        let (of_agent, log) = (ending.clone(), Arc::clone(log));
        let server = server::Server::new(ask, Arc::clone(&interval), group, of_agent, log);
        let serve = move || {
            runtime.block_on(async {
                if let Ok(listener) = UnixListener::from_std(listener) {
                    server.serve(listener).await;
                }
            });
        };
        let thread = thread::Builder::new().name("query".into()).spawn(serve);
        thread.with_context(cannot)?;
        Ok(Self { asks, interval, ending, path })
    }

    /// The next question; for ever none, once nobody asks any more.
    pub async fn next(&mut self) -> Ask {
        match self.asks.recv().await {
            Some(ask) => ask,
            None => std::future::pending().await,
        }
    }

    /// The agent ends. What is given ends when all who have file operations counted are told what was counted until now,
    /// for which they ask the loop.
    pub fn end(&self) -> impl Future<Output = ()> + use<> {
        let ending = self.ending.clone();
        ending.send_replace(true);
        async move { ending.closed().await }
    }

    /// An interval has ended.
    pub fn tick(&self) {
        self.interval.fetch_add(1, Ordering::Release);
    }
}

impl Drop for Queries {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
