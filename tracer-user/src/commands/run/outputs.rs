//! Where a run's numbers go. Everything is opened before the command starts, so that no run is in
//! vain.

use std::io::{self, Write};

use anyhow::{Result, bail, ensure};

use super::{Args, saver::Saver, top::View};
use crate::{
    base::{identity::boot_id, say::say},
    files::{
        publish::cure,
        target::{Target, is_same, metadata_of_input, stream_of},
    },
    lines::file_sink::{FileSink, Rotation, Writer},
    model::point::Origin,
    record::{Record, document::document, store::Store},
    screen::is_gone,
    view::{Style, summary},
};

/// The outputs asked for.
pub struct Outputs {
    /// Line protocol.
    pub sink: Option<FileSink>,
    json: Option<Target>,
    save: Option<Saver>,
    /// The recording: to be, until the recorder takes it, and whole, when it gave it back.
    pub recording: Option<Target>,
    /// Who watches, while the command runs.
    pub view: Option<View>,
    quiet: bool,
    failed: bool,
}

impl Outputs {
    /// Opens them. `go_on` is asked while a named pipe has no reader.
    ///
    /// # Errors
    /// When one cannot be written, two are the same file or one is a standard stream's, or `go_on` says no.
    pub fn open(args: &Args, origin: &Origin, go_on: impl Fn() -> Result<()>) -> Result<Self> {
        for (option, path) in [("--json", &args.json), ("--record", &args.record)] {
            let Some(path) = path else { continue };
            if let Some(stream) = stream_of(path) {
                let path = path.display();
                bail!(
                    "{option} {path} and {stream} are the same file: name another file or redirect {stream}"
                );
            }
        }
        let writer =
            Writer { host: origin.host.clone(), boot_id: boot_id(), pid: std::process::id() };
        let sink = args.out.as_ref().map(|dir| FileSink::create(dir, &writer, Rotation::default()));
        let sink = sink.transpose()?;
        let save = args.save.as_ref().map(|dir| Store::open(dir, &origin.host)).transpose()?;
        let save = save.map(|store| Saver::new(store, args.replay.is_some()));
        let open = |path| Target::open(path, &go_on);
        let json = args.json.as_deref().map(open).transpose()?;
        let recording = args.record.as_deref().map(open).transpose()?;
        if let Some(json) = &json {
            let recorded = recording.as_ref().map(Target::metadata);
            let replayed = args.replay.as_deref().map(metadata_of_input);
            // All are open, whatever way led to them: a link, a name that was not there yet.
            for other in recorded.into_iter().chain(replayed) {
                ensure!(
                    !is_same(&json.metadata()?, &other?),
                    "--json {} would overwrite the recording: name another file",
                    json.path().display()
                );
            }
        }
        Ok(Self { sink, json, save, recording, view: None, quiet: args.quiet, failed: false })
    }

    /// The command has started: what the files held before goes.
    pub fn begin(&mut self) {
        if let Some(Err(error)) = self.json.as_mut().map(Target::begin) {
            self.complain(&error.into());
        }
    }

    /// Says that something went wrong; the run goes on.
    pub fn complain(&mut self, error: &anyhow::Error) {
        self.failed = true;
        say(format_args!("{error:#}"));
    }

    /// Has the record saved as it is, where that is due.
    pub fn save_if_due(&mut self, record: impl FnOnce() -> Record, elapsed_ns: u64) {
        let saved = self.save.as_mut().map(|saver| saver.save_if_due(record, elapsed_ns));
        if let Some(Err(error)) = saved {
            // The last one counts.
            say(format_args!("{error:#}"));
        }
    }

    /// Has the record shown as it is, where somebody watches and that is due.
    pub fn show_if_due(&mut self, record: impl FnOnce() -> Record, elapsed_ns: u64) {
        if let Some(view) = &mut self.view {
            view.show_if_due(record, elapsed_ns);
        }
    }

    /// Bytes of line protocol that could not be written so far.
    pub fn lost_bytes(&self) -> u64 {
        self.sink.as_ref().map_or(0, FileSink::lost_bytes)
    }

    /// Writes what is written at the end, then waits for readers; `go_on` is asked meanwhile. Gives whether
    /// all output is complete.
    pub fn finish(mut self, record: &Record, go_on: impl Fn() -> Result<()>) -> bool {
        // Before all that waits for somebody.
        if let Some(Err(error)) = self.save.take().map(|saver| saver.finish(record)) {
            self.complain(&error);
        }
        // The rest is for the terminal as it was.
        if let Some(view) = self.view.take() {
            view.close(&go_on);
        }
        let mut whole = Vec::from_iter(self.recording.take());
        if let Some(mut file) = self.json.take() {
            let written = document(record).and_then(|text| {
                file.begin()?;
                file.keep();
                file.write_all(text.as_bytes()).and_then(|()| file.sync())?;
                Ok(())
            });
            match written {
                Ok(()) => whole.push(file),
                Err(error) => self.complain(&cannot(&file, error)),
            }
        }
        if !self.quiet {
            let text = summary(record, &Style::for_stderr());
            match io::stderr().write_all(text.as_bytes()) {
                Err(error) if !is_gone(&error) => {
                    let cure = cure(&error);
                    let cannot = format!("cannot write the summary to standard error: {cure}");
                    self.complain(&anyhow::Error::new(error).context(cannot));
                }
                // Nobody reads it any more: no reason to fail.
                _ => {}
            }
        }
        for file in whole {
            if let Err(error) = file.finish(&go_on) {
                self.complain(&cannot(&file, error));
            }
        }
        !self.failed && self.lost_bytes() == 0
    }
}

fn cannot(file: &Target, error: anyhow::Error) -> anyhow::Error {
    let cure = error.downcast_ref().map_or("", cure);
    let colon = if cure.is_empty() { "" } else { ": " };
    error.context(format!("cannot write {}{colon}{cure}", file.name()))
}
