//! Asking a folder what is installed in it, by a process of its own: whoever waits for a file system that took a request and
//! never answers it (a FUSE server whose network is gone) cannot be ended, not even by a signal, and a thread that waits so
//! keeps its whole process from ending. That process holds nothing but its answer.

use std::{
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
};

use serde::{Deserialize, Serialize};

use super::listing::{Listing, read, read_age};

/// The hidden command of jobtrace that answers.
pub const COMMAND: &str = "list-modules";
/// Bytes of an answer at most.
const MOST_BYTES: u64 = 16 << 20;

/// Inode, time of change in seconds and nanoseconds.
pub type Age = (u64, i64, i64);

/// What a folder says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// It is as it was.
    Unchanged,
    /// This is in it.
    Listed(Age, Listing),
}

/// What the folder at `site` says, which was of this age `before`. May hang with its file system.
///
/// # Errors
/// When it cannot be read.
pub fn ask(site: &str, before: Option<Age>, with_files: bool) -> io::Result<Answer> {
    let site = Path::new(site);
    let age = read_age(site)?;
    if before == Some(age) {
        return Ok(Answer::Unchanged);
    }
    Ok(Answer::Listed(age, read(site, with_files)?))
}

/// The same, asked by another process: it alone hangs, and goes once its file system answers.
///
/// # Errors
/// As [`ask`], or when there can be no process.
pub fn ask_apart(site: &str, before: Option<Age>, with_files: bool) -> io::Result<Answer> {
    let wish = serde_json::to_string(&(site, before, with_files))?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(COMMAND).arg(wish).current_dir("/");
    // A terminal's signals are the command's, and its output is waited for by others.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut answer = Vec::new();
    let output = child.stdout.take().map(|output| output.take(MOST_BYTES));
    let read = output.map_or(Ok(0), |mut output| output.read_to_end(&mut answer));
    child.wait()?;
    read?;
    Ok(serde_json::from_slice(&answer)?)
}

/// Answers `wish` of `ask_apart` on standard output; the exit status.
///
/// # Errors
/// When the folder cannot be read, or nobody listens any more.
pub fn answer(wish: &str) -> anyhow::Result<u8> {
    let (site, before, with_files): (String, _, _) = serde_json::from_str(wish)?;
    let answer = ask(&site, before, with_files)?;
    io::stdout().write_all(&serde_json::to_vec(&answer)?)?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("six-1.16.0.dist-info")).unwrap();
        let site = folder.path().to_str().unwrap();
        let told = ask(site, None, true).unwrap();
        let Answer::Listed(age, _) = &told else { panic!("{told:?}") };
        let unchanged = ask(site, Some(*age), true).unwrap();
        for answer in [told, unchanged] {
            let text = serde_json::to_vec(&answer).unwrap();
            assert_eq!(serde_json::from_slice::<Answer>(&text).unwrap(), answer);
        }
        assert!(ask("/nowhere", None, false).is_err());
    }
}
