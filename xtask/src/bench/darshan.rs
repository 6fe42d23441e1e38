//! Darshan, which a program loads into itself: where its library is, how a command is begun with it, and what its log
//! says of one. Its source builds without MPI: `./prepare.sh`, then in darshan-runtime `./configure --without-mpi
//! --with-log-path-by-env=DARSHAN_LOG_DIR_PATH --with-jobid-env=NONE`, and darshan-util for the log.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};

use super::io_told::Told;
use crate::process::{find, output, say};

/// Where to look for it, in the environment.
const VARIABLE: &str = "DARSHAN_LIB";
const LIBRARY: &str = "libdarshan.so";
/// The program that prints a log.
const PARSER: &str = "darshan-parser";
/// A module that it had no room for the files of.
const INCOMPLETE: &str = "contains incomplete data";

/// One that is installed.
pub struct Darshan {
    library: PathBuf,
    log: PathBuf,
}

impl Darshan {
    /// That of `DARSHAN_LIB`, or that which the dynamic loader knows; its log lies in `scratch`. Where there is none that
    /// is said.
    ///
    /// # Errors
    /// When `DARSHAN_LIB` names no file: who sets it wants the row.
    pub fn find(scratch: &Path) -> Result<Option<Self>> {
        let known = || {
            let text = output(Command::new(find("ldconfig")?).arg("-p")).ok()?;
            of_loader(&text).map(PathBuf::from)
        };
        let asked = env::var_os(VARIABLE).map(PathBuf::from);
        if let Some(library) = asked.as_ref().filter(|library| !library.is_file()) {
            bail!("{VARIABLE} names no file: {}", library.display());
        }
        let Some(library) = asked.or_else(known) else {
            say(format_args!(
                "Darshan is not installed, its rows are missing: build it (xtask/src/bench/darshan.rs says how) and set \
                 {VARIABLE} to its {LIBRARY}"
            ));
            return Ok(None);
        };
        Ok(Some(Self { library, log: scratch.join("darshan.log") }))
    }

    /// What is put before a command of one process, so that its calls are counted. It writes no log over another one.
    ///
    /// # Errors
    /// When the last log cannot be removed.
    pub fn before(&self) -> Result<[String; 4]> {
        if self.log.exists() {
            fs::remove_file(&self.log).context("remove Darshan's log")?;
        }
        let [library, log] = [&self.library, &self.log].map(|path| path.display());
        Ok([
            "env".to_owned(),
            format!("LD_PRELOAD={library}"),
            "DARSHAN_ENABLE_NONMPI=1".to_owned(),
            format!("DARSHAN_LOGFILE={log}"),
        ])
    }

    /// What the last command's log says; nothing where the program that prints it is missing.
    ///
    /// # Errors
    /// When there is no log, or it cannot be printed.
    pub fn told(&self) -> Result<Option<Told>> {
        let beside = self.library.parent().and_then(Path::parent);
        let beside = beside.map(|prefix| prefix.join("bin").join(PARSER));
        let Some(parser) = beside.filter(|file| file.is_file()).or_else(|| find(PARSER)) else {
            return Ok(None);
        };
        let text =
            output(Command::new(parser).args(["--total", "--show-incomplete"]).arg(&self.log));
        Ok(Some(of_log(&text?)))
    }
}

/// The library in what `ldconfig -p` prints: `name (kind) => path`.
fn of_loader(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| line.trim_start().starts_with(LIBRARY))?;
    line.split_once("=> ").map(|(_, path)| path.trim())
}

/// The sums in a log: `total_POSIX_OPENS: 9`.
fn of_log(text: &str) -> Told {
    let number = |name: &str| {
        let line =
            text.lines().find_map(|line| line.strip_prefix("total_POSIX_")?.strip_prefix(name));
        line.and_then(|rest| rest.strip_prefix(": ")?.trim().parse().ok())
    };
    Told {
        opens: number("OPENS"),
        reads: number("READS"),
        read_bytes: number("BYTES_READ"),
        is_incomplete: text.contains(INCOMPLETE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_where_the_loader_finds_it() {
        let text = "2 libs found in cache\n\tlibdar.so (libc6) => /lib/libdar.so\n\
                    \tlibdarshan.so (libc6,x86-64) => /opt/darshan/lib/libdarshan.so\n";
        assert_eq!(of_loader(text), Some("/opt/darshan/lib/libdarshan.so"));
        assert_eq!(of_loader("0 libs found in cache\n"), None);
    }

    /// In the shape of what darshan-parser 3.4.7 prints.
    #[test]
    fn a_log_that_had_no_room_for_all_files_says_so() {
        let sums = "total_POSIX_OPENS: 8192\ntotal_POSIX_READS: 8192\ntotal_POSIX_WRITES: 0\n\
                    total_POSIX_BYTES_READ: 33554432\n";
        let told = of_log(sums);
        assert_eq!((told.opens, told.reads), (Some(8_192), Some(8_192)));
        assert_eq!(told.read_bytes, Some(33_554_432));
        assert!(!told.is_incomplete);
        let short = "# *WARNING*: The POSIX module contains incomplete data!\n";
        assert!(of_log(&format!("{short}{sums}")).is_incomplete);
        assert_eq!(of_log("# no module data available.\n").opens, None);
    }
}
