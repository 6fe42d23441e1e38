//! What of the configuration matters to the census: how much is told, by which rules of the site, and of whom.

use std::{
    fs::{self, File},
    io::Read,
    os::unix::fs::MetadataExt,
    path::Path,
};

use anyhow::{Context, Result, ensure};

use super::config::{Config, SoftwareUser};
use crate::{
    census::{Options, Site},
    model::software_point::UserTag,
};

/// Shortest secret, bytes: less can be found by trying.
const SHORTEST_SECRET: usize = 16;
/// Longest one that is read.
const LONGEST_SECRET: u64 = 4096;

/// How it names, and what is told of owners.
#[derive(Clone, Debug)]
pub struct SoftwareSettings {
    /// For the thread that names.
    pub options: Options,
    /// Tag `user` of the lines.
    pub user: UserTag,
}

impl SoftwareSettings {
    /// Those of `config`; `None` where nobody is to watch.
    ///
    /// # Errors
    /// When the site's file is damaged, or the secret cannot be read.
    pub fn of(config: &Config) -> Result<Option<Self>> {
        let Some(level) = config.census.level() else { return Ok(None) };
        let options = Options { level, site: Site::read()?, apart: true, ..Options::default() };
        let user = match config.software.user {
            SoftwareUser::On => UserTag::On,
            SoftwareUser::Off => UserTag::Off,
            SoftwareUser::Hashed => UserTag::Hashed(read_secret(&config.software.secret_file)?),
        };
        Ok(Some(Self { options, user }))
    }
}

/// The secret in `file`.
fn read_secret(file: &Path) -> Result<String> {
    let shown = file.display();
    let cure = || {
        format!(
            "`software.user = \"hashed\"` needs a secret: (umask 077; head -c 32 /dev/urandom | base64 > {shown}), the \
             same on all nodes"
        )
    };
    let is_file = fs::metadata(file).map(|of| of.is_file());
    let is_file = is_file.with_context(|| format!("cannot read {shown}")).with_context(cure)?;
    ensure!(is_file, "{shown} is no file: {}", cure());
    let open =
        File::open(file).with_context(|| format!("cannot read {shown}")).with_context(cure)?;
    let mode = open.metadata().with_context(cure)?.mode();
    ensure!(
        mode & 0o077 == 0,
        "others may read {shown}, which makes hashes of users: chmod 600 {shown}"
    );
    let mut secret = String::new();
    let read = open.take(LONGEST_SECRET).read_to_string(&mut secret);
    read.with_context(|| format!("cannot read {shown}")).with_context(cure)?;
    let secret = secret.trim().to_owned();
    ensure!(
        secret.len() >= SHORTEST_SECRET,
        "the secret in {shown} is shorter than {SHORTEST_SECRET} bytes: {}",
        cure()
    );
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt, process::Command};

    use super::*;
    use crate::commands::agent::config::CensusMode;

    #[test]
    fn a_secret_is_long_and_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        let mut config = Config { census: CensusMode::Counts, ..Config::default() };
        config.software.user = SoftwareUser::Hashed;
        config.software.secret_file = file.clone();
        let refused = |words: &str| {
            let error = format!("{:#}", SoftwareSettings::of(&config).unwrap_err());
            assert!(error.contains(words), "{error}");
        };
        refused("needs a secret");
        fs::write(&file, "0123456789abcdef\n").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        refused("others may read");
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let user = SoftwareSettings::of(&config).unwrap().unwrap().user;
        assert_eq!(user, UserTag::Hashed("0123456789abcdef".into()));
        fs::remove_file(&file).unwrap();
        assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
        refused("is no file");
        fs::remove_file(&file).unwrap();
        fs::write(&file, "short").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        refused("shorter than 16 bytes");
        assert!(SoftwareSettings::of(&Config::default()).unwrap().is_none(), "off needs none");
    }
}
