//! The terminal as a file of our own: read and written without being stuck in it. Owns when it counts as gone; refuses
//! to know what is shown.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, BorrowedFd},
        unix::fs::OpenOptionsExt,
    },
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    io::Errno,
    termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};

/// Who waits for a terminal that takes nothing looks up this often.
const WAKE: Duration = Duration::from_millis(100);
/// Where a terminal does not say how large it is: columns and rows of most.
const USUAL: (u16, u16) = (80, 24);

/// Whether to give up writing to a terminal that has taken nothing for this time.
pub type GiveUp = Arc<dyn Fn(Duration) -> bool + Send + Sync>;

/// A terminal. Writing waits until it takes what is written, is gone, or the writer gives up (`TimedOut`). It fails once:
/// what is written afterwards is dropped. ratatui shows the cursor as it goes and would tell of a second failure on
/// standard error, where that is the same terminal with a panic.
#[derive(Clone)]
pub struct Tty {
    file: Arc<File>,
    give_up: GiveUp,
    has_failed: bool,
}

impl Tty {
    /// The terminal that `stream` is.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn open(stream: BorrowedFd, give_up: GiveUp) -> io::Result<Self> {
        // Opened anew: not to block is a flag that all copies of a descriptor share, the shell's too.
        let anew = |path: &str| {
            let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
            File::options().read(true).write(true).custom_flags(flags.bits() as i32).open(path)
        };
        let file = anew(&format!("/proc/self/fd/{}", stream.as_raw_fd()))
            // Another user's, after su(1).
            .or_else(|_| anew("/dev/tty"))
            // And not the session's either: a copy, which only a hang-up frees from a write.
            .or_else(|_| stream.try_clone_to_owned().map(File::from))?;
        Ok(Self { file: Arc::new(file), give_up, has_failed: false })
    }

    /// Columns and rows.
    ///
    /// # Errors
    /// When it is gone.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = tcgetwinsize(&self.file)?;
        Ok(match (size.ws_col, size.ws_row) {
            (0, _) | (_, 0) => USUAL,
            said => said,
        })
    }

    /// From now on keys come one by one, and none of them is a signal; gives the settings as they were.
    ///
    /// # Errors
    /// When the terminal refuses.
    pub fn make_raw(&self) -> io::Result<Termios> {
        let before = tcgetattr(&self.file)?;
        let mut raw = before.clone();
        raw.make_raw();
        self.set(&raw)?;
        Ok(before)
    }

    /// Gives it these settings.
    ///
    /// # Errors
    /// When the terminal refuses.
    pub fn set(&self, settings: &Termios) -> io::Result<()> {
        Ok(tcsetattr(&self.file, OptionalActions::Now, settings)?)
    }

    /// What was typed, as soon as there is something; empty when `patience` is over.
    ///
    /// # Errors
    /// When it is gone ([`is_gone`]).
    pub fn read(&self, patience: Duration) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; 256];
        let count = match self.is_ready(PollFlags::IN, patience)? {
            true => match (&*self.file).read(&mut bytes) {
                Ok(0) => return Err(Errno::IO.into()),
                // Another process that reads here had it.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                read => read?,
            },
            false => 0,
        };
        bytes.truncate(count);
        Ok(bytes)
    }

    fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
        let begin = Instant::now();
        loop {
            match (&*self.file).write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
            if (self.give_up)(begin.elapsed()) {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it takes nothing"));
            }
            self.is_ready(PollFlags::OUT, WAKE)?;
        }
    }

    fn is_ready(&self, wanted: PollFlags, patience: Duration) -> io::Result<bool> {
        let mut polled = [PollFd::new(&self.file, wanted)];
        let patience = Timespec::try_from(patience).ok();
        match poll(&mut polled, patience.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let found = polled[0].revents();
        // It stays readable and writable for ever then.
        if found.intersects(PollFlags::HUP | PollFlags::ERR) {
            return Err(Errno::IO.into());
        }
        Ok(found.intersects(wanted))
    }
}

impl Write for Tty {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.has_failed {
            return Ok(bytes.len());
        }
        let written = self.write_some(bytes);
        self.has_failed = written.is_err();
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether an error means that nobody is at the other end any more: of a terminal or of a pipe.
pub fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe || error.raw_os_error() == Some(libc::EIO)
}

/// Whether an error means that the writer gave up.
pub fn is_given_up(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut
}
