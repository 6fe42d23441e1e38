//! The line to the host: the second serial port.

use std::{
    fs::File,
    io::Write,
    sync::{Mutex, OnceLock},
};

use anyhow::{Context, Result};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use xtask::guest::{Line, PORT};

use crate::setup;

static HOST: OnceLock<Mutex<File>> = OnceLock::new();

/// Opens the one that the kernel's command line names, and has it pass bytes unchanged.
///
/// # Errors
/// When there is none.
pub fn open(line: &str) -> Result<()> {
    let path = setup::option(line, PORT).context("no serial port is named")?;
    let port = File::options().write(true).open(&path);
    let port = port.with_context(|| format!("no serial port {path} to the host"))?;
    let mut settings = tcgetattr(&port).context("no terminal")?;
    settings.make_raw();
    tcsetattr(&port, OptionalActions::Now, &settings).context("a raw terminal")?;
    let _ = HOST.set(Mutex::new(port));
    Ok(())
}

/// Tells the host. A machine that cannot is of no use, so a failure ends the work.
pub fn say(line: &Line) {
    let text = serde_json::to_string(line).unwrap() + "\n";
    let mut port = HOST.get().expect("opened first").lock().unwrap();
    port.write_all(text.as_bytes()).unwrap();
}
