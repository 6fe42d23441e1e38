//! `jobtrace push`: the spool's files to a database, for sites without a collector.
//!
//! Owns the way from a finished file to the server's answer, and what becomes of the file. Refuses to
//! know what is in a line, to write into the outbox, and to let go of a file that the server has not
//! taken whole (docs/decisions/0016-push.md).

pub mod answer;
pub mod back_off;
pub mod batches;
mod client;
mod connector;
pub mod file;
mod loading;
pub mod options;
pub mod outbox;
pub mod reason;
mod secret;
mod session;
mod stop;
pub mod target;
mod totals;
mod trust;

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
    task::JoinHandle,
    time::timeout,
};

use self::{client::Client, outbox::Outbox, session::Session, stop::Stop};
use crate::{
    agent::notify::Notify,
    cli::Push,
    say::{Level, print, say_at},
};

/// What the request in flight gets when a signal says to end; it may be broken off at any moment.
const GRACE: Duration = Duration::from_millis(1500);

/// Sends what is there, or with `--follow` what comes; the exit status.
///
/// # Errors
/// When the configuration is wrong, or the server refuses in a way that waiting does not cure. Then no
/// file was moved.
pub fn run(args: &Push) -> Result<u8> {
    let options = loading::load(args)?;
    if args.print_config {
        return print(&options.to_text()).map(|()| 0);
    }
    let settings = options.settings()?;
    let client = Client::new(&settings)?;
    if args.dry_run {
        return session::dry_run(&settings, &Outbox::new(&settings.spool));
    }
    let outbox = Outbox::take(&settings.spool, settings.failed_max_bytes)?;
    let stop = Arc::new(Stop::default());
    let session = Session::new(settings, client, outbox, stop.clone(), args.follow);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let ended = wait(&runtime, session, &stop);
    // A request that does not end is left to the end of the process.
    runtime.shutdown_background();
    ended
}

/// Lets the session work beside this thread, which listens to signals.
fn wait(runtime: &Runtime, session: Session, stop: &Stop) -> Result<u8> {
    runtime.block_on(async {
        let take = |kind| signal(kind).context("cannot receive signals");
        let mut terminate = take(SignalKind::terminate())?;
        let mut interrupt = take(SignalKind::interrupt())?;
        let follow = session.follows();
        let mut work: JoinHandle<Result<u8>> = tokio::task::spawn_blocking(move || session.run());
        tokio::select! {
            ended = &mut work => return ended.context("the sending broke off")?,
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.set();
        Notify::from_environment().stopping();
        match timeout(GRACE, &mut work).await {
            Ok(ended) => ended.context("the sending broke off")?,
            Err(_) => {
                let what = "a request was interrupted; its file stays and will be sent again";
                say_at(Level::Notice, what);
                Ok(u8::from(!follow))
            }
        }
    })
}
