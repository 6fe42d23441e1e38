//! A file that a run writes, or standard output: opened before the command starts, emptied once it has.
//!
//! Until then what is there stays as it is, so that a run which fails to start costs nobody a file. Refuses
//! to know what is written.

use std::{
    fs::{self, File, Metadata},
    io::{self, ErrorKind, IsTerminal, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::feed::Feed;
use crate::base::{closed::is_standard_output_closed, say::say};

/// The name of standard output, and of standard input where something is read.
pub const STANDARD: &str = "-";
/// Its names among the files. Opened by them, what it has already would be written over.
const STANDARD_OUTPUT: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
/// How often a pipe without a reader is tried, and a reader that has not all yet looked at.
const PACE: Duration = Duration::from_millis(50);
/// A reader that takes longer, to come or to read, is worth a word.
const LONG: Duration = Duration::from_secs(1);

/// Whether `path` is standard output or input.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == STANDARD
}

/// Whether the output `path` is standard output.
pub fn is_standard_output(path: &Path) -> bool {
    is_standard(path) || STANDARD_OUTPUT.iter().any(|name| path == Path::new(name))
}

/// The standard stream that is one file with the output `path`: what jobtrace and the command say there
/// would be among the numbers, or over them. Opens nothing.
pub fn stream_of(path: &Path) -> Option<&'static str> {
    let metadata =
        |stream: BorrowedFd| File::from(stream.try_clone_to_owned().ok()?).metadata().ok();
    let (stdout, stderr) = (metadata(io::stdout().as_fd()), metadata(io::stderr().as_fd()));
    let is = |a: &Option<Metadata>, b: &Option<Metadata>| {
        a.as_ref().zip(b.as_ref()).is_some_and(|(a, b)| is_same(a, b))
    };
    if is_standard_output(path) {
        // The journal's stream takes lines of both.
        let is_socket = stderr.as_ref().is_some_and(|stderr| stderr.file_type().is_socket());
        return (is(&stdout, &stderr) && !is_socket).then_some("standard error");
    }
    let file = fs::metadata(path).ok();
    let streams = [(stdout, "standard output"), (stderr, "standard error")];
    streams.into_iter().find_map(|(stream, name)| is(&file, &stream).then_some(name))
}

/// An open output. Dropped before [`Target::keep`], it is removed if it was made or emptied here.
#[derive(Debug)]
pub struct Target {
    path: PathBuf,
    file: File,
    /// Writes it where that may have to wait for a reader.
    feed: Option<Feed>,
    is_ours: bool,
}

impl Target {
    /// Opens `path`, or standard output for one of its names. A named pipe has to have a reader, which is waited for;
    /// `go_on` is asked meanwhile.
    ///
    /// # Errors
    /// When it cannot be written, or `go_on` says no.
    pub fn open(path: &Path, go_on: impl Fn() -> Result<()>) -> Result<Self> {
        let cannot = || format!("cannot write {}: name a file that you may write", name(path));
        if is_standard_output(path) {
            ensure!(
                !is_standard_output_closed(),
                "cannot write to standard output, which is closed: redirect it or name a file"
            );
            let file = io::stdout().as_fd().try_clone_to_owned().with_context(cannot)?.into();
            return Ok(Self { path: path.to_owned(), file, feed: None, is_ours: false });
        }
        let is_new = fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
        let begin = Instant::now();
        let mut is_said = false;
        let file = loop {
            match open_now(path) {
                // A pipe that nobody reads. Opened in the usual way it would wait, and hear no signal.
                Err(error) if error.raw_os_error() == Some(libc::ENXIO) && is_pipe(path) => {
                    go_on()?;
                    if !is_said && begin.elapsed() >= LONG {
                        say(format_args!("waiting for a reader of {}", path.display()));
                        is_said = true;
                    }
                    sleep(PACE);
                }
                opened => break opened.with_context(cannot)?,
            }
        };
        Ok(Self { path: path.to_owned(), file, feed: None, is_ours: is_new })
    }

    /// What it is called in messages.
    pub fn name(&self) -> String {
        name(&self.path)
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is open.
    ///
    /// # Errors
    /// As for any file.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// Empties it: from here on it is this run's. What may have to wait for a reader gets a thread: call it
    /// after whatever must be done by a process of one.
    ///
    /// # Errors
    /// As for any file, or where there is no thread to be had.
    pub fn begin(&mut self) -> io::Result<()> {
        // What standard output has was the caller's wish, as with `>>`.
        if !is_standard_output(&self.path) && is_regular(&self.file) {
            self.is_ours = true;
            self.file.set_len(0)?;
        }
        if self.feed.is_none() && may_wait(&self.file) {
            self.feed = Some(Feed::start(self.file.try_clone()?)?);
        }
        Ok(())
    }

    /// Waits until its reader, if it has one, has been given all; `go_on` is asked meanwhile.
    ///
    /// # Errors
    /// When it cannot be written, or `go_on` says no.
    pub fn finish(&self, go_on: impl Fn() -> Result<()>) -> Result<()> {
        let Some(feed) = &self.feed else { return Ok(()) };
        let begin = Instant::now();
        let mut is_said = false;
        while !feed.wait(PACE)? {
            go_on()?;
            if !is_said && begin.elapsed() >= LONG {
                say(format_args!("waiting for the reader of {}", self.name()));
                is_said = true;
            }
        }
        Ok(())
    }

    /// What was written stays, whatever comes.
    pub fn keep(&mut self) {
        self.is_ours = false;
    }

    /// Sees that it is on the disk, where it is a file there: a pipe refuses.
    ///
    /// # Errors
    /// As for any file.
    pub fn sync(&self) -> io::Result<()> {
        if is_regular(&self.file) { self.file.sync_all() } else { Ok(()) }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.feed {
            Some(feed) => feed.write(bytes),
            None => self.file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // The command never started, or nothing came of it: an empty file would pass for its numbers.
        if self.is_ours && is_regular(&self.file) {
            // What a link leads to, and not the link.
            let _ = fs::canonicalize(&self.path).and_then(fs::remove_file);
        }
    }
}

/// Whether what is written to the one comes out of the other. Devices may be shared: the terminal, the
/// null device.
pub fn is_same(a: &Metadata, b: &Metadata) -> bool {
    let may_be_shared = a.file_type().is_char_device() || a.file_type().is_block_device();
    (a.dev(), a.ino()) == (b.dev(), b.ino()) && !may_be_shared
}

/// What will be read from `path`, standard input for `-`. It is not opened: a pipe might have to wait.
///
/// # Errors
/// When there is no such file.
pub fn metadata_of_input(path: &Path) -> io::Result<Metadata> {
    if is_standard(path) {
        File::from(io::stdin().as_fd().try_clone_to_owned()?).metadata()
    } else {
        fs::metadata(path)
    }
}

fn name(path: &Path) -> String {
    if is_standard_output(path) { "standard output".into() } else { path.display().to_string() }
}

fn open_now(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(false).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path)?;
    // Only the opening was not to wait.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// Whether somebody has to read it before it takes more.
fn may_wait(file: &File) -> bool {
    let is_read =
        |metadata: Metadata| metadata.file_type().is_fifo() || metadata.file_type().is_socket();
    file.is_terminal() || file.metadata().is_ok_and(is_read)
}

/// Whether it is neither a pipe nor a device.
fn is_regular(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file())
}
