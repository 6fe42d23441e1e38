//! Debian's chromium without a window: pages opened, and pictures of them.

use std::{ffi::OsStr, path::Path, process::Command};

/// Which of its two looks a page is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl Scheme {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Light, Self::Dark];

    /// Its name in a file's.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    fn setting(self) -> &'static str {
        match self {
            Self::Light => "--blink-settings=preferredColorScheme=1",
            Self::Dark => "--blink-settings=preferredColorScheme=0",
        }
    }
}

/// The browser with a profile of its own in `folder`, on the page in `file`, whose scripts may read files beside it.
/// What it is to do with the page is up to the caller.
#[must_use]
pub fn chromium(folder: &Path, file: &Path, scheme: Scheme) -> Command {
    let mut profile = OsStr::new("--user-data-dir=").to_owned();
    profile.push(folder.join("profile"));
    let mut url = OsStr::new("file://").to_owned();
    url.push(file);
    let mut command = Command::new("chromium");
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
    command.args(["--enable-logging=stderr", "--allow-file-access-from-files", scheme.setting()]);
    command.arg(profile).arg(url);
    command
}
