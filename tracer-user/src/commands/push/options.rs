//! What may be set, on the command line and in push.toml: one definition of both. Owns defaults, limits
//! and what may not stand together; refuses secrets themselves, of which only the files are named.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::{
    base::{
        text::wrap,
        values::{Size, Time},
    },
    record::store::Access,
    server::{
        PUSH,
        secret::{self, Authorization, Names},
        target::{self, Api, Place},
    },
};

/// Width of the explanations in the file.
const COLUMNS: usize = 94;

/// The options; each is a key of the file too, with `_` for `-`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// The server, such as `https://influx.example.org:8086`, without the interface's path (/write)
    #[arg(long)]
    pub url: Option<String>,
    /// The server's interface: v1, v2, v3 (InfluxDB) or victoria [default: v2 with --org or --bucket, else v1]
    #[arg(long, value_enum)]
    pub api: Option<Api>,
    /// The database (v1, v3) [default: jobtrace]; with VictoriaMetrics the tag `db` of every line
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,
    /// The retention policy (v1) [default: the database's own]
    #[arg(long, value_name = "NAME")]
    pub retention_policy: Option<String>,
    /// The organisation (v2)
    #[arg(long, value_name = "NAME")]
    pub org: Option<String>,
    /// The bucket (v2)
    #[arg(long, value_name = "NAME")]
    pub bucket: Option<String>,
    /// User name on the server; the password is from --password-file or JOBTRACE_PUSH_PASSWORD
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// File that contains the user's password
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// File that contains a token for the server [default: the variable JOBTRACE_PUSH_TOKEN, if it is set]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// File of certificates (PEM) to trust, the server's authority's or its own [default: those that this
    /// system trusts]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// The agent's spool, or a folder written by `jobtrace run --out` [default: /var/spool/jobtrace]
    #[arg(long, value_name = "DIR")]
    pub spool: Option<PathBuf>,
    /// Maximum time for a request and its answer [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<Time>,
    /// Maximum text in one request, before compression [default: 9 MiB]
    #[arg(long, value_name = "SIZE")]
    pub max_body: Option<Size>,
    /// Consecutive failures before giving up, without --follow [default: 5]
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,
    /// How often to look for new files, with --follow [default: 5s]
    #[arg(long, value_name = "TIME")]
    pub every: Option<Time>,
    /// Maximum bytes of refused files to keep; above it the oldest are removed, and it is logged [default: 1 GiB]
    #[arg(long, value_name = "SIZE")]
    pub failed_max_bytes: Option<Size>,
    /// The agent's records [default: /var/lib/jobtrace/records]
    #[arg(long, value_name = "DIR")]
    pub records: Option<PathBuf>,
    /// Folder on a file system that the cluster shares, which gets a copy of the records; it must exist. A server is
    /// not needed then
    #[arg(long, value_name = "DIR")]
    pub records_to: Option<PathBuf>,
    /// Who may read the copies: users (each his own, by access control lists), prepared (whom the folder DIR/UID lets,
    /// which root has made) or open (everybody everything) [default: users]
    #[arg(long, value_enum)]
    pub records_access: Option<Access>,
    /// Copies of records of jobs that were last seen longer ago than this are removed, whatever the agent keeps
    /// [default: 730 days]
    #[arg(long, value_name = "TIME")]
    pub records_max_age: Option<Time>,
}

/// All that the sending needs.
#[derive(Debug)]
pub struct PushSettings {
    /// Where to post to, with its query.
    pub url: String,
    /// The server's interface.
    pub api: Api,
    /// How to show who we are.
    pub authorization: Option<Authorization>,
    /// Certificates instead of the system's.
    pub ca: Option<PathBuf>,
    /// Where files are.
    pub spool: PathBuf,
    /// For a request.
    pub timeout: Duration,
    /// Bytes.
    pub max_body: usize,
    /// Attempts.
    pub retries: u32,
    /// Between two looks.
    pub every: Duration,
    /// Of refused files.
    pub failed_max_bytes: u64,
}

impl Options {
    /// What counts where nothing is given.
    pub fn defaults() -> Self {
        Self {
            spool: Some("/var/spool/jobtrace".into()),
            timeout: Some(Time::seconds(30)),
            max_body: Some(Size(9 << 20)),
            retries: Some(5),
            every: Some(Time::seconds(5)),
            failed_max_bytes: Some(Size(1 << 30)),
            records: Some("/var/lib/jobtrace/records".into()),
            records_access: Some(Access::Users),
            records_max_age: Some(Time::seconds(730 * 86_400)),
            ..Self::default()
        }
    }

    /// These, and where one is absent that of `below`.
    #[must_use]
    pub fn or(self, below: Self) -> Self {
        Self {
            url: self.url.or(below.url),
            api: self.api.or(below.api),
            database: self.database.or(below.database),
            retention_policy: self.retention_policy.or(below.retention_policy),
            org: self.org.or(below.org),
            bucket: self.bucket.or(below.bucket),
            user: self.user.or(below.user),
            password_file: self.password_file.or(below.password_file),
            token_file: self.token_file.or(below.token_file),
            ca: self.ca.or(below.ca),
            spool: self.spool.or(below.spool),
            timeout: self.timeout.or(below.timeout),
            max_body: self.max_body.or(below.max_body),
            retries: self.retries.or(below.retries),
            every: self.every.or(below.every),
            failed_max_bytes: self.failed_max_bytes.or(below.failed_max_bytes),
            records: self.records.or(below.records),
            records_to: self.records_to.or(below.records_to),
            records_access: self.records_access.or(below.records_access),
            records_max_age: self.records_max_age.or(below.records_max_age),
        }
    }

    /// What follows from the options; reads the files of secrets.
    ///
    /// # Errors
    /// What is missing or wrong, and the cure.
    pub fn settings(&self) -> Result<PushSettings> {
        let all = self.clone().or(Self::defaults());
        let url = all.url.as_deref().context(
            "no server given: set --url https://HOST:8086, or url in /etc/jobtrace/push.toml (or --records-to DIR, to copy records alone)",
        )?;
        let place = Place {
            database: all.database.clone(),
            retention_policy: all.retention_policy.clone(),
            org: all.org.clone(),
            bucket: all.bucket.clone(),
        };
        let api = all.api.unwrap_or_else(|| target::guess(&place));
        let url = target::write_url(url, api, &place).map_err(|why| anyhow!(why))?;
        let within = |time: Option<Time>, name: &str, low: u64, high: u64| {
            let time = time.map_or(Duration::ZERO, |Time(time)| time);
            let bounds = Duration::from_secs(low)..=Duration::from_secs(high);
            ensure!(bounds.contains(&time), "--{name} must be from {low}s to {high}s");
            Ok(time)
        };
        let max_body = all.max_body.map_or(0, |Size(bytes)| bytes);
        let allowed = 64 << 10..=1 << 30;
        ensure!(allowed.contains(&max_body), "--max-body must be from 64 KiB to 1 GiB");
        let names = Names {
            user: all.user.as_deref(),
            password_file: all.password_file.as_deref(),
            token_file: all.token_file.as_deref(),
        };
        Ok(PushSettings {
            authorization: secret::read(names, api, &PUSH)?,
            url,
            api,
            ca: all.ca,
            spool: all.spool.unwrap_or_default(),
            timeout: within(all.timeout, "timeout", 1, 600)?,
            max_body: max_body as usize,
            retries: all.retries.unwrap_or_default(),
            every: within(all.every, "every", 1, 3600)?,
            failed_max_bytes: all.failed_max_bytes.map_or(0, |Size(bytes)| bytes),
        })
    }

    /// As a commented file: what is set, and what is not as a comment.
    pub fn to_text(&self) -> String {
        let all = toml::Table::try_from(self.clone().or(Self::defaults())).unwrap_or_default();
        let own = toml::Table::try_from(self).unwrap_or_default();
        let block = |(name, help): (String, String)| {
            let help = wrap(&help, COLUMNS).into_iter().map(|line| format!("# {line}\n"));
            let value = match (own.get(&name), all.get(&name)) {
                (Some(value), _) => format!("{name} = {value}\n"),
                (None, Some(value)) => format!("#{name} = {value}\n"),
                (None, None) => format!("#{name} = \"\"\n"),
            };
            help.collect::<String>() + &value
        };
        keys().into_iter().map(block).collect::<Vec<_>>().join("\n")
    }

    /// The file that a package installs.
    pub fn default_file() -> String {
        let head = "\
# Configuration of `jobtrace push`, which the unit jobtrace-push runs. Commented-out values are defaults
# or not set. Options override this file; with --url it is not read at all.
# Put secrets into files of their own, which the user jobtrace-push can read and other users cannot.

";
        head.to_owned() + &Self::default().to_text()
    }
}

/// Every key with what it means, from the command line's definition.
pub fn keys() -> Vec<(String, String)> {
    let command = Options::augment_args(clap::Command::new("push"));
    let arguments = command.get_arguments().filter(|argument| argument.get_long().is_some());
    let row = |argument: &clap::Arg| {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        (argument.get_id().to_string(), help)
    };
    arguments.map(row).filter(|(id, _)| id != "help").collect()
}

#[cfg(test)]
mod tests;
