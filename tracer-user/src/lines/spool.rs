//! The agent's spool: `DIR/tmp`, where files are written, and `DIR/outbox`, where they appear whole and
//! wait for a collector.
//!
//! Owns the folder of its node's files: their names, their order, their end. Refuses to touch any file
//! whose name it did not make, and to know what the agent's state is: that lies between
//! [`Spool::prepare`] and [`Spool::publish`] (docs/decisions/0009-spool.md).

pub mod limits;
pub mod name;
pub mod recover;
pub mod whole;

use std::{borrow::Borrow, fs, io, path::Path};

use anyhow::{Result, ensure};

pub use self::{
    limits::{Dropped, Limits},
    recover::{Recovered, Resume},
};
use self::{
    limits::{Index, SpoolFile},
    name::{Part, SetName},
};
use super::{
    batch::Batch,
    line::{self, Precision},
    writer::Writer,
};
use crate::{
    files::publish::{Stage, TRIES, cure},
    model::point::Point,
};

/// Text after which a set goes on in another file: InfluxDB 1 refuses bodies of 25 MB and is best fed
/// below 10.
const PART_BYTES: usize = 8 << 20;
/// Text that is compressed at once: line by line, 600 lines of 170 bytes take five times as long.
const PIECE_BYTES: usize = 16 << 10;

/// A set of files on the disk that no reader sees yet. To be published or discarded.
#[must_use = "a prepared set appears when it is published"]
#[derive(Debug)]
pub struct Prepared {
    name: String,
    files: Vec<SpoolFile>,
}

impl Prepared {
    /// What the agent's state has to hold before [`Spool::publish`].
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The spool of one node.
#[derive(Debug)]
pub struct Spool {
    stage: Stage,
    node: String,
    boot: u32,
    limits: Limits,
    precision: Precision,
    sequence: u64,
    index: Index,
    unpublished: Option<Prepared>,
    dropped: Dropped,
}

impl Spool {
    /// The spool in `dir`, which is made where it is absent. Call [`Spool::recover`] before anything
    /// else, then [`Spool::enforce`].
    ///
    /// # Errors
    /// When its folders cannot be made or read.
    pub fn open(dir: &Path, limits: Limits, writer: &Writer) -> Result<Self> {
        let mut spool = Self {
            stage: Stage { tmp: dir.join("tmp"), done: dir.join("outbox") },
            node: writer.file_host(),
            boot: writer.boot(),
            limits,
            precision: Precision::default(),
            sequence: 0,
            index: Index::new(writer.boot()),
            unpublished: None,
            dropped: Dropped::default(),
        };
        spool.told(spool.stage.make(), "open the spool")?;
        let found = spool.look(&spool.stage.done);
        let found = spool.told(found, "read the spool")?;
        spool.index.replace(found);
        Ok(spool)
    }

    /// Writes `points`, measured from `start_wall_ns` on, to tmp, and an interval log beside them where
    /// one is asked for. Nothing appears before [`Spool::publish`], which [`Spool::discard`] may replace.
    ///
    /// # Errors
    /// When the disk refuses, or an earlier set still cannot be published. Nothing of this one is left
    /// on the disk: keep the points, and try again with the next interval.
    pub fn prepare<P: Borrow<Point>>(
        &mut self,
        points: impl IntoIterator<Item = P> + Clone,
        hlog: Option<&str>,
        start_wall_ns: u64,
        monotonic_ns: u64,
    ) -> Result<Prepared> {
        // So that the agent's state never has to name two sets.
        if let Some(earlier) = self.unpublished.take() {
            self.publish(earlier)?;
        }
        for _ in 0..TRIES {
            self.sequence = monotonic_ns.max(self.sequence + 1);
            let (boot, sequence) = (self.boot, self.sequence);
            let set = SetName { boot, sequence, start_ns: start_wall_ns };
            let mut prepared = Prepared { name: set.show(&self.node), files: Vec::new() };
            match self.write_set(set, points.clone(), hlog, &mut prepared) {
                Ok(()) => return Ok(prepared),
                Err(error) => {
                    self.discard(prepared);
                    if error.kind() != io::ErrorKind::AlreadyExists {
                        return self.told(Err(error), "write to the spool");
                    }
                }
            }
        }
        self.told(Err(io::ErrorKind::AlreadyExists.into()), "write to the spool")
    }

    /// Lets the files of `prepared` appear in the outbox.
    ///
    /// # Errors
    /// When the disk refuses; the set stays in tmp and is published by the next [`Spool::prepare`], so
    /// it must not be written again. When somebody removed its files from tmp, they are lost.
    pub fn publish(&mut self, mut prepared: Prepared) -> Result<()> {
        let mut lost = 0;
        while let Some(&entry) = prepared.files.first() {
            let name = entry.set.file(&self.node, entry.part);
            match self.stage.publish(&name) {
                Ok(()) => self.index.push(entry),
                Err(error) if error.kind() == io::ErrorKind::NotFound => lost += 1,
                Err(error) => {
                    self.unpublished = Some(prepared);
                    return self
                        .told(Err(error), "publish a file of the spool, which stays in tmp");
                }
            }
            prepared.files.remove(0);
        }
        let tmp = self.stage.tmp.display();
        ensure!(
            lost == 0,
            "{lost} files were removed from {tmp} by something else and are lost: leave that folder to jobtrace"
        );
        Ok(())
    }

    /// Removes a prepared set, whose interval will be written again.
    pub fn discard(&mut self, prepared: Prepared) {
        for entry in prepared.files {
            self.stage.discard(&entry.set.file(&self.node, entry.part));
        }
    }

    /// Drops from the outbox what is too old and, the oldest first, what is too much. Call it at each
    /// tick: without need it reads no folder.
    ///
    /// # Errors
    /// When a file cannot be removed; what was dropped before counts in [`Spool::dropped`].
    pub fn enforce(&mut self, wall_ns: u64, monotonic_ns: u64) -> Result<Dropped> {
        let before = self.dropped;
        let done = self.drop_surplus(wall_ns, monotonic_ns);
        self.told(done, "drop the oldest files of the spool")?;
        Ok(Dropped {
            files: self.dropped.files - before.files,
            bytes: self.dropped.bytes - before.bytes,
        })
    }

    /// In what the time stamps of the lines are, from the next [`Spool::prepare`] on.
    pub fn set_precision(&mut self, precision: Precision) {
        self.precision = precision;
    }

    /// Other caps, from the next [`Spool::enforce`] on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// All that was dropped since [`Spool::open`].
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    fn write_set<P: Borrow<Point>>(
        &self,
        set: SetName,
        points: impl IntoIterator<Item = P>,
        hlog: Option<&str>,
        prepared: &mut Prepared,
    ) -> io::Result<()> {
        let mut write = |part, bytes: &[u8]| {
            self.stage.prepare(&set.file(&self.node, part), bytes)?;
            prepared.files.push(SpoolFile { set, part, bytes: bytes.len() as u64 });
            io::Result::Ok(())
        };
        let (mut batch, mut number, mut text) = (Batch::default(), 0, Vec::new());
        for point in points {
            line::encode_at(point.borrow(), self.precision, &mut text);
            if text.len() < PIECE_BYTES {
                continue;
            }
            batch.push(&text);
            text.clear();
            if batch.bytes() >= PART_BYTES {
                write(Part::Lines(number), &std::mem::take(&mut batch).finish()?)?;
                number += 1;
            }
        }
        batch.push(&text);
        if batch.bytes() > 0 {
            write(Part::Lines(number), &batch.finish()?)?;
        }
        hlog.map_or(Ok(()), |text| write(Part::Hlog, text.as_bytes()))
    }

    fn drop_surplus(&mut self, wall_ns: u64, monotonic_ns: u64) -> io::Result<()> {
        let mut aged = self.index.take_aged(&self.limits, wall_ns, monotonic_ns).into_iter();
        while let Some(entry) = aged.next() {
            self.remove(entry)
                .inspect_err(|_| aged.by_ref().for_each(|e| self.index.put_back(e)))?;
        }
        if self.index.is_over(&self.limits) {
            // The collector may have taken some since the last look.
            let found = self.look(&self.stage.done)?;
            self.index.replace(found);
            if self.index.is_over(&self.limits) {
                while let Some(entry) = self.index.take_oldest(&self.limits) {
                    self.remove(entry)?;
                }
            }
        }
        Ok(())
    }

    fn remove(&mut self, entry: SpoolFile) -> io::Result<()> {
        match fs::remove_file(self.stage.done.join(entry.set.file(&self.node, entry.part))) {
            Ok(()) => {
                self.dropped.files += 1;
                self.dropped.bytes += entry.bytes;
                Ok(())
            }
            // The collector was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => {
                self.index.put_back(entry);
                Err(error)
            }
        }
    }

    /// Files of this node in `dir`; none where it is absent.
    fn look(&self, dir: &Path) -> io::Result<Vec<SpoolFile>> {
        let entries = match fs::read_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let ours = name.to_str().and_then(|name| SetName::parse(&self.node, name));
            let Some((set, part)) = ours else { continue };
            match entry.metadata() {
                Ok(metadata) if metadata.is_file() => {
                    found.push(SpoolFile { set, part, bytes: metadata.len() });
                }
                // Taken since, or no file of ours.
                _ => {}
            }
        }
        Ok(found)
    }

    /// `result` with what was tried, where, and the cure.
    fn told<T>(&self, result: io::Result<T>, tried: &str) -> Result<T> {
        result.map_err(|error| {
            let dir = self.stage.done.parent().unwrap_or(&self.stage.done).display();
            let message = format!("cannot {tried} {dir}: {}", cure(&error));
            anyhow::Error::new(error).context(message)
        })
    }
}
