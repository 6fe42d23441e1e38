//! Where a run's numbers go. Everything is opened before the command starts, so that no run is in
//! vain.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use super::identity::boot_id;
use crate::{
    cli::Run,
    export::{
        file_sink::{FileSink, Rotation, Writer},
        json,
    },
    model::{points::Origin, totals::RunTotals},
    say::say,
    summary::{Style, render},
};

/// The outputs asked for.
pub struct Outputs {
    /// Line protocol.
    pub sink: Option<FileSink>,
    json: Option<(PathBuf, File)>,
    quiet: bool,
    failed: bool,
}

impl Outputs {
    /// Opens them.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn open(args: &Run, origin: &Origin) -> Result<Self> {
        let recording = args.replay.as_ref().or(args.record.as_ref());
        if let (Some(json), Some(recording)) = (&args.json, recording) {
            let path = json.display();
            ensure!(
                !is_same_file(json, recording),
                "--json {path} would overwrite the recording: name another file"
            );
        }
        let writer =
            Writer { host: origin.host.clone(), boot_id: boot_id(), pid: std::process::id() };
        let sink = args.out.as_ref().map(|dir| FileSink::create(dir, &writer, Rotation::default()));
        let json = args.json.as_ref().map(|path| {
            let file = File::create(path).with_context(|| {
                format!("cannot write {}: name a file you may write", path.display())
            })?;
            anyhow::Ok((path.clone(), file))
        });
        Ok(Self {
            sink: sink.transpose()?,
            json: json.transpose()?,
            quiet: args.quiet,
            failed: false,
        })
    }

    /// Says that something went wrong; the run goes on.
    pub fn complain(&mut self, error: &anyhow::Error) {
        self.failed = true;
        say(format_args!("{error:#}"));
    }

    /// Bytes of line protocol that could not be written so far.
    pub fn lost_bytes(&self) -> u64 {
        self.sink.as_ref().map_or(0, FileSink::lost_bytes)
    }

    /// Writes what is written at the end. Gives whether all output is complete.
    pub fn finish(mut self, totals: &RunTotals) -> bool {
        if let Some((path, mut file)) = self.json.take() {
            let written = json::document(totals).and_then(|text| {
                let written = file.write_all(text.as_bytes()).and_then(|()| sync(&file));
                written
                    .with_context(|| format!("cannot write {}: free space there", path.display()))
            });
            if let Err(error) = written {
                self.complain(&error);
            }
        }
        if !self.quiet {
            // Nobody reads it any more: no reason to fail.
            let _ = std::io::stderr().write_all(render(totals, &Style::for_stderr()).as_bytes());
        }
        !self.failed && self.lost_bytes() == 0
    }
}

impl Drop for Outputs {
    fn drop(&mut self) {
        // The command never started: an empty file would pass for its numbers.
        if let Some((path, file)) = self.json.take()
            && is_regular(&file)
        {
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether both name one file, which need not be there yet; pipes and devices may be shared.
fn is_same_file(a: &Path, b: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|at| (at.dev(), at.ino(), at.is_file()));
    match (identity(a), identity(b)) {
        (Ok(a), Ok(b)) => a == b && a.2,
        _ => a == b,
    }
}

/// Whether it is neither a pipe nor a device.
fn is_regular(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file())
}

/// Sees that it is on the disk, where it is a file there: a pipe refuses.
fn sync(file: &File) -> io::Result<()> {
    if is_regular(file) { file.sync_all() } else { Ok(()) }
}
