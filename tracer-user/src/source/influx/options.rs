//! The options that name a database, as `jobtrace push` names them.

use std::{ffi::OsStr, path::PathBuf};

use crate::{base::values::Time, server::target::Place};

/// Which database, and who we are there.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Ask the InfluxDB 1.x or 2.x at URL that the agents' lines are sent to, instead of reading records
    #[arg(long, value_name = "URL", conflicts_with = "from", help_heading = "Database")]
    pub influx: Option<String>,
    /// The database (1.x) [default: jobtrace]
    #[arg(long, value_name = "NAME", requires = "influx", help_heading = "Database")]
    pub influx_database: Option<String>,
    /// The retention policy (1.x) [default: the database's own]
    #[arg(long, value_name = "NAME", requires = "influx", help_heading = "Database")]
    pub influx_retention_policy: Option<String>,
    /// The organisation (2.x)
    #[arg(
        long, value_name = "NAME", requires = "influx_bucket", help_heading = "Database",
        conflicts_with_all = ["influx_database", "influx_retention_policy"]
    )]
    pub influx_org: Option<String>,
    /// The bucket (2.x)
    #[arg(
        long, value_name = "NAME", requires = "influx_org", help_heading = "Database",
        conflicts_with_all = ["influx_database", "influx_retention_policy"]
    )]
    pub influx_bucket: Option<String>,
    /// User name on the server; the password is from --influx-password-file or JOBTRACE_INFLUX_PASSWORD
    #[arg(long, value_name = "NAME", requires = "influx", help_heading = "Database")]
    pub influx_user: Option<String>,
    /// File that contains the user's password
    #[arg(long, value_name = "FILE", requires = "influx", help_heading = "Database")]
    pub influx_password_file: Option<PathBuf>,
    /// File that contains a token for the server [default: the variable JOBTRACE_INFLUX_TOKEN, if it is set]
    #[arg(long, value_name = "FILE", requires = "influx", help_heading = "Database")]
    pub influx_token_file: Option<PathBuf>,
    /// File of certificates (PEM) to trust, the server's authority's or its own [default: those that this
    /// system trusts]
    #[arg(long, value_name = "FILE", requires = "influx", help_heading = "Database")]
    pub influx_ca: Option<PathBuf>,
    /// Maximum time for all answers together
    #[arg(long, value_name = "TIME", default_value = "60s", help_heading = "Database")]
    pub influx_timeout: Time,
}

impl Options {
    /// The words of a command line that name the same.
    pub fn words(&self) -> Vec<&OsStr> {
        let texts = [
            ("--influx", &self.influx),
            ("--influx-database", &self.influx_database),
            ("--influx-retention-policy", &self.influx_retention_policy),
            ("--influx-org", &self.influx_org),
            ("--influx-bucket", &self.influx_bucket),
            ("--influx-user", &self.influx_user),
        ]
        .map(|(name, text)| (name, text.as_ref().map(OsStr::new)));
        let files = [
            ("--influx-password-file", &self.influx_password_file),
            ("--influx-token-file", &self.influx_token_file),
            ("--influx-ca", &self.influx_ca),
        ]
        .map(|(name, file)| (name, file.as_ref().map(|file| file.as_os_str())));
        let given = |(name, value): (&'static str, Option<_>)| Some([OsStr::new(name), value?]);
        texts.into_iter().chain(files).filter_map(given).flatten().collect()
    }

    /// The names that tell one database from another in a server.
    pub fn place(&self) -> Place {
        Place {
            database: self.influx_database.clone(),
            retention_policy: self.influx_retention_policy.clone(),
            org: self.influx_org.clone(),
            bucket: self.influx_bucket.clone(),
        }
    }
}
