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

/// The streams, led elsewhere until it goes.
pub struct Kept {
    file: File,
    /// What of the file the terminal has.
    passed_bytes: u64,
    /// Each stream that was led elsewhere, and where it led.
    streams: Vec<(RawFd, OwnedFd)>,
    /// Where the file's text goes.
    terminal: Option<File>,
}

impl Kept {
    /// Leads those that are a terminal elsewhere, standard input to /dev/null: keys are the view's.
    ///
    /// # Errors
    /// When there can be no file in TMPDIR.
    pub fn begin() -> Result<Self> {
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
        let mut kept = Self { file, passed_bytes: 0, streams: Vec::new(), terminal: None };
        let file = kept.file.try_clone().context("cannot copy a descriptor")?;
        kept.lead(io::stdin(), null.as_fd())?;
        kept.lead(io::stdout(), file.as_fd())?;
        kept.lead(io::stderr(), file.as_fd())?;
        let of_output = kept.streams.iter().find(|(number, _)| *number != io::stdin().as_raw_fd());
        let terminal = of_output.map(|(_, was)| was.try_clone().map(File::from));
        kept.terminal = terminal.transpose().context("cannot copy a descriptor")?;
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

    /// Leads this process's streams back; the command's stay.
    pub fn lead_back(&mut self) {
        for (number, was) in self.streams.drain(..) {
            // Both are open: there is no way to fail.
            let _ = duplicate(was.as_fd(), number);
        }
    }

    /// Writes to the terminal what it does not have yet.
    ///
    /// # Errors
    /// When it is gone, or the file cannot be read.
    pub fn pass_on(&mut self) -> io::Result<()> {
        let Some(terminal) = &mut self.terminal else { return Ok(()) };
        let mut bytes = [0; 1 << 16];
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
    fn drop(&mut self) {
        self.lead_back();
        // Where that fails nobody is there to read it.
        let _ = self.pass_on();
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
