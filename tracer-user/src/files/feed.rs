//! What is written to a reader that may be slow or stop: a thread of its own writes it, behind a queue.
//!
//! A pipe, a socket or a terminal takes what its reader leaves room for. Who writes there directly waits for
//! the reader, and can do nothing else as long. Made non-blocking it would be so for all that hold it.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, ErrorKind, Write},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// How far a reader may be behind: an hour of readings once a second. More is an error.
pub const MOST_BYTES: usize = 16 << 20;
/// Written at once: what a pipe holds by default.
const CHUNK_BYTES: usize = 64 << 10;

/// The writing end. Dropped, it leaves what is queued to the thread, which ends with the process.
#[derive(Debug)]
pub struct Feed(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    queue: VecDeque<u8>,
    is_writing: bool,
    /// The thread has ended with it.
    error: Option<io::Error>,
    /// Nobody adds any more.
    is_closed: bool,
}

impl Feed {
    /// Begins to write to `file` what comes.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(mut file: File) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let its = Arc::clone(&shared);
        let serve = move || while its.write_some(&mut file) {};
        thread::Builder::new().name("output".into()).spawn(serve)?;
        Ok(Self(shared))
    }

    /// Waits up to `time` until all is written, and gives whether it is.
    ///
    /// # Errors
    /// As for any file.
    pub fn wait(&self, time: Duration) -> io::Result<bool> {
        let is_busy = |state: &mut Queue| {
            state.error.is_none() && (state.is_writing || !state.queue.is_empty())
        };
        let waited = self.0.changed.wait_timeout_while(self.0.lock(), time, is_busy);
        let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        state.failed()?;
        Ok(!timeout.timed_out())
    }
}

impl Write for Feed {
    /// Queues all of `bytes` or nothing.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock();
        state.failed()?;
        if state.queue.len() + bytes.len() > MOST_BYTES {
            let behind = format!("it is {} MiB behind", MOST_BYTES >> 20);
            return Err(io::Error::new(ErrorKind::WouldBlock, behind));
        }
        state.queue.extend(bytes);
        self.0.changed.notify_all();
        Ok(bytes.len())
    }

    /// Nothing: [`Feed::wait`] waits.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for something to write, and writes it. Gives whether there may be more.
    fn write_some(&self, file: &mut File) -> bool {
        let is_idle = |state: &mut Queue| state.queue.is_empty() && !state.is_closed;
        let waited = self.changed.wait_while(self.lock(), is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        let count = state.queue.len().min(CHUNK_BYTES);
        let chunk: Vec<u8> = state.queue.drain(..count).collect();
        state.is_writing = !chunk.is_empty();
        drop(state);
        let written = file.write_all(&chunk);
        let mut state = self.lock();
        state.is_writing = false;
        state.error = written.err();
        self.changed.notify_all();
        state.error.is_none() && !(state.is_closed && state.queue.is_empty())
    }
}

impl Queue {
    fn failed(&self) -> io::Result<()> {
        let again = |error: &io::Error| match error.raw_os_error() {
            Some(number) => io::Error::from_raw_os_error(number),
            None => error.kind().into(),
        };
        self.error.as_ref().map_or(Ok(()), |error| Err(again(error)))
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read, os::fd::OwnedFd};

    use super::*;

    const SHORT: Duration = Duration::from_millis(10);
    const LONG: Duration = Duration::from_secs(60);

    fn feed() -> (io::PipeReader, Feed) {
        let (reader, writer) = io::pipe().unwrap();
        (reader, Feed::start(File::from(OwnedFd::from(writer))).unwrap())
    }

    #[test]
    fn a_reader_that_stops_holds_nobody_up_and_has_all_in_the_end() {
        let (mut reader, mut feed) = feed();
        let bytes: Vec<u8> = (0..1_u32 << 20).map(|number| number as u8).collect();
        feed.write_all(&bytes).unwrap();
        assert!(!feed.wait(SHORT).unwrap(), "a pipe holds 64 KiB");
        let mut read = vec![0; bytes.len()];
        reader.read_exact(&mut read).unwrap();
        assert!(feed.wait(LONG).unwrap());
        assert_eq!(read, bytes);
        feed.write_all(b"the last").unwrap();
        drop(feed);
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "the last", "and the pipe is closed");
    }

    #[test]
    fn a_reader_too_far_behind_is_an_error_and_what_was_taken_is_whole() {
        let (mut reader, mut feed) = feed();
        let piece = [b'x'; 1 << 20];
        let mut taken = 0;
        let error = loop {
            match feed.write_all(&piece) {
                Ok(()) => taken += piece.len(),
                Err(error) => break error,
            }
            assert!(taken <= MOST_BYTES + 2 * CHUNK_BYTES, "{taken}");
        };
        assert!(taken >= MOST_BYTES - piece.len(), "{taken}");
        assert_eq!(error.to_string(), "it is 16 MiB behind");
        drop(feed);
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        assert_eq!(rest.len(), taken);
    }

    #[test]
    fn a_reader_that_has_gone_is_an_error_from_then_on() {
        let (reader, mut feed) = feed();
        drop(reader);
        feed.write_all(b"x").unwrap();
        assert_eq!(feed.wait(LONG).unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert_eq!(feed.write(b"y").unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert_eq!(feed.wait(LONG).unwrap_err().kind(), ErrorKind::BrokenPipe);
    }
}
