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

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
    task::JoinHandle,
    time::timeout,
};

use self::{client::Client, outbox::Outbox, session::Session, stop::Stop};
use crate::base::{
    notify::Notify,
    say::{Level, print, say_at},
};

/// Send the spool's files to InfluxDB or VictoriaMetrics.
///
/// For sites without Telegraf or another collector. A file is removed from the spool once the server has
/// stored all of it. A file with lines that the server refuses is moved to `failed` beside the outbox, with
/// the server's answer in FILE.reason. Anything that may succeed later is retried: if the server is down,
/// slow, busy or broken. Sending a file twice is harmless. Without --url, /etc/jobtrace/push.toml is read,
/// in which every option is a key, with `_` for `-`. Tokens and passwords come from files or the environment
/// (JOBTRACE_PUSH_TOKEN, JOBTRACE_PUSH_PASSWORD), proxies from the environment (HTTPS_PROXY, NO_PROXY). The
/// exit status is 0 if everything was sent, 1 if files were refused or remain, 2 if it cannot start or the
/// server refuses access.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  Start it as a service, with the server in /etc/jobtrace/push.toml:
      systemctl enable --now jobtrace-push
  Send a run's output once, to InfluxDB 1.x:
      jobtrace run --out metrics/ -- ./simulate && jobtrace push --spool metrics/ --url http://influx:8086
  InfluxDB 2.x:
      jobtrace push --url https://influx:8086 --org hpc --bucket jobtrace --token-file token
  InfluxDB 3.x, and VictoriaMetrics:
      jobtrace push --url https://influx:8181 --api v3 --database jobtrace --token-file token
      jobtrace push --url http://metrics:8428 --api victoria
  Show what would be sent:
      jobtrace push --url http://influx:8086 --dry-run")]
pub struct Args {
    /// The configuration file [default: /etc/jobtrace/push.toml, unless --url is given]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Keep running and send new files as they appear
    #[arg(long)]
    pub follow: bool,
    /// Show what would be sent, without sending it
    #[arg(long, conflicts_with = "follow")]
    pub dry_run: bool,
    /// Print the configuration that results from file and options
    #[arg(long, conflicts_with_all = ["follow", "dry_run"])]
    pub print_config: bool,
    /// Where to, and how.
    #[command(flatten)]
    pub options: options::Options,
}

/// What the request in flight gets when a signal says to end; it may be broken off at any moment.
const GRACE: Duration = Duration::from_millis(1500);

/// Sends what is there, or with `--follow` what comes; the exit status.
///
/// # Errors
/// When the configuration is wrong, or the server refuses in a way that waiting does not cure. Then no
/// file was moved.
pub fn run(args: &Args) -> Result<u8> {
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
