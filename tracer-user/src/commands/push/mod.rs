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
mod records;
mod secret;
mod session;
mod stop;
pub mod target;
mod totals;
mod trust;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
    task::JoinHandle,
    time::timeout,
};

use self::{client::Client, outbox::Outbox, records::Copier, session::Session, stop::Stop};
use crate::base::{
    notify::Notify,
    say::{Level, print, say_at},
};

/// Send the spool's files to InfluxDB or VictoriaMetrics, and copy records to a shared folder.
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
      jobtrace push --url http://influx:8086 --dry-run
  Copy the records of this node's jobs to a folder that the cluster shares:
      jobtrace push --records-to /shared/jobtrace")]
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
    let stop = Arc::new(Stop::default());
    let copier = Copier::new(&options, &stop)?;
    if options.url.is_none()
        && let Some(copier) = copier
    {
        return copy_alone(copier, args, &stop);
    }
    let settings = options.settings()?;
    let client = Client::new(&settings)?;
    if args.dry_run {
        return session::dry_run(&settings, &Outbox::new(&settings.spool));
    }
    let outbox = Outbox::take(&settings.spool, settings.failed_max_bytes)?;
    let session = Session::new(settings, client, outbox, stop.clone(), args.follow);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let follow = session.follows();
    let work = move || match (copier, follow) {
        (Some(copier), true) => copier.follow().and_then(|()| session.run()),
        // The lines first: a server does not hang for ever.
        (Some(copier), false) => Ok(session.run()?.max(copier.once()?)),
        (None, _) => session.run(),
    };
    let ended = wait(&runtime, work, follow, &stop);
    // A request that does not end is left to the end of the process.
    runtime.shutdown_background();
    ended
}

/// Copies records, without a server.
fn copy_alone(copier: Copier, args: &Args, stop: &Arc<Stop>) -> Result<u8> {
    ensure!(!args.dry_run, "--dry-run shows what would be sent to a server: set --url");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let (follow, waits) = (args.follow, Arc::clone(stop));
    let work = move || {
        if !follow {
            return copier.once();
        }
        copier.follow()?;
        Notify::from_environment().ready("copying records");
        while !waits.sleep(Duration::from_secs(3600)) {}
        Ok(0)
    };
    let ended = wait(&runtime, work, follow, stop);
    runtime.shutdown_background();
    ended
}

/// Does `work` beside this thread, which listens to signals.
fn wait(
    runtime: &Runtime,
    work: impl FnOnce() -> Result<u8> + Send + 'static,
    follow: bool,
    stop: &Stop,
) -> Result<u8> {
    runtime.block_on(async {
        let take = |kind| signal(kind).context("cannot receive signals");
        let mut terminate = take(SignalKind::terminate())?;
        let mut interrupt = take(SignalKind::interrupt())?;
        let mut work: JoinHandle<Result<u8>> = tokio::task::spawn_blocking(work);
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
                let what = "interrupted: what was under way will be sent or copied again";
                say_at(Level::Notice, what);
                Ok(u8::from(!follow))
            }
        }
    })
}
