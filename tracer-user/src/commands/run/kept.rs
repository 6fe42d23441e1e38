//! Standard streams that are the terminal which a view has: what the command and jobtrace itself write goes to a file
//! without a name until the view is over, and then to the terminal.

use std::{
    fs::File,
    io::{self, IsTerminal, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
        unix::fs::FileExt,
    },
};

use anyhow::{Context, Result};
use rustix::fs::OFlags;

use crate::screen::Tty;

/// The terminal has it in pieces of this size: one that takes a piece is alive.
const PIECE_BYTES: usize = 4096;

/// The streams, led elsewhere until it goes.
pub struct Kept {
    file: File,
    /// What of the file the terminal has.
    passed_bytes: u64,
    /// Each stream that was led elsewhere, and where it led.
    streams: Vec<(RawFd, OwnedFd)>,
    /// Where the file's text goes, while that takes it.
    terminal: Option<Tty>,
}

impl Kept {
    /// Leads those that are a terminal elsewhere until `terminal` is free, standard input to /dev/null: keys are the
    /// view's.
    ///
    /// # Errors
    /// When there can be no file in TMPDIR.
    pub fn begin(terminal: Tty) -> Result<Self> {
        let file = tempfile::tempfile().with_context(|| {
            let folder = std::env::temp_dir();
            format!(
                "cannot keep the command's output in {}: set TMPDIR to a folder with room, or redirect the output",
                folder.display()
            )
        })?;
        // As to a terminal: whoever opens it anew, as /dev/stdout, writes behind what is there.
        rustix::fs::fcntl_setfl(&file, OFlags::APPEND).context("cannot append to a file")?;
        let null = File::open("/dev/null").context("cannot open /dev/null")?;
        let terminal = Some(terminal);
        let mut kept = Self { file, passed_bytes: 0, streams: Vec::new(), terminal };
        let file = kept.file.try_clone().context("cannot copy a descriptor")?;
        kept.lead(io::stdin(), null.as_fd())?;
        kept.lead(io::stdout(), file.as_fd())?;
        kept.lead(io::stderr(), file.as_fd())?;
        Ok(kept)
    }

    fn lead(&mut self, stream: impl AsFd + IsTerminal, to: BorrowedFd) -> Result<()> {
        const CANNOT: &str = "cannot redirect a standard stream";
        if !stream.is_terminal() {
            return Ok(());
        }
        let was = stream.as_fd().try_clone_to_owned().context(CANNOT)?;
        let number = stream.as_fd().as_raw_fd();
        duplicate(to, number).context(CANNOT)?;
        self.streams.push((number, was));
        Ok(())
    }

    /// Writes to the terminal what it does not have yet.
    ///
    /// # Errors
    /// When it is gone or takes nothing, or the file cannot be read; the terminal is left then.
    pub fn pass_on(&mut self) -> io::Result<()> {
        self.pass_rest_on().inspect_err(|_| self.leave())
    }

    /// Nothing reaches the terminal any more, nor waits for it: the streams stay led into the file.
    pub fn leave(&mut self) {
        self.terminal = None;
        self.streams.clear();
    }

    fn pass_rest_on(&mut self) -> io::Result<()> {
        let Some(terminal) = &mut self.terminal else { return Ok(()) };
        let mut bytes = [0; PIECE_BYTES];
        loop {
            let count = self.file.read_at(&mut bytes, self.passed_bytes)?;
            if count == 0 {
                return Ok(());
            }
            terminal.write_all(&bytes[..count])?;
            self.passed_bytes += count as u64;
        }
    }
}

impl Drop for Kept {
    /// The terminal has what was kept, and this process's streams are what they were; the command's stay led elsewhere.
    fn drop(&mut self) {
        // Where that fails nobody is there to read it.
        let _ = self.pass_on();
        for (number, was) in self.streams.drain(..) {
            // Both are open: there is no way to fail.
            let _ = duplicate(was.as_fd(), number);
        }
    }
}

/// Makes `number` another descriptor of what `of` is one of.
fn duplicate(of: BorrowedFd, number: RawFd) -> io::Result<()> {
    // SAFETY: dup2 takes any numbers; those of the standard streams are nobody's to close.
    match unsafe { libc::dup2(of.as_raw_fd(), number) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
