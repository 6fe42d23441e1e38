//! `jobtrace run`: one command traced as a job, or a recording looked at again.

mod args;
mod buffered;
pub mod gpus;
mod identity;
mod kept;
mod live;
mod notes;
mod outputs;
mod pipeline;
mod saver;
mod software;
mod top;

pub use args::Args;

use anyhow::Result;

use crate::{model::source::Source, replay::Replay};
use outputs::Outputs;
use pipeline::Pipeline;

/// Runs it and gives the exit status: the command's own, or 1 where it was 0 and output was lost. Of a
/// recording: 1 where output was lost or the recording lacks its end.
///
/// # Errors
/// When nothing could be run; the status is then 2.
pub fn run(args: &Args) -> Result<u8> {
    match &args.replay {
        Some(file) => replay(args, &mut Replay::open(file)?),
        None => live::run(args),
    }
}

fn replay(args: &Args, recording: &mut Replay) -> Result<u8> {
    let header = recording.header().clone();
    let outputs = Outputs::open(args, &header.origin, || Ok(()))?;
    let mut pipeline = Pipeline::new(&header, outputs)?;
    while let Some(snapshot) = recording.snapshot()? {
        pipeline.take(snapshot);
    }
    // The header's notes went in with the header.
    let notes = recording.notes()[header.notes.len()..].to_vec();
    pipeline.name_files(recording.end().map(|end| end.files.clone()).unwrap_or_default());
    let end = recording.end().map(|end| (end.wall_ns, end.exit));
    let complete = pipeline.finish(end, notes, || Ok(())) && end.is_some();
    Ok(u8::from(!complete))
}
