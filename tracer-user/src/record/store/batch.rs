//! Records that are saved together: all are written, then the disk is waited for, then all appear.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write},
    time::{Duration, UNIX_EPOCH},
};

use anyhow::Result;

use super::{
    super::{
        Record, file,
        head::Head,
        name::{self, Place},
    },
    LONGEST_BYTES, Store,
};
use crate::files::folder::Folder;

/// A record on its way to its place.
pub(super) struct Written {
    pub name: String,
    pub line: String,
    /// In tmp; `None` where the one in place is the same.
    pub file: Option<File>,
    /// Whether one is in place.
    replaces: bool,
}

/// The owner's and the day's folder.
type Day = (String, String);

impl Store {
    /// Writes each of `records` in place of its earlier state, and its head; of several states of one record the last.
    /// What is saved is on the disk when this returns: the disk is waited for once for all of them, not for each. One
    /// that is there already is left alone: after a restart an agent cannot know what the one before still saved.
    ///
    /// Gives for each what became of it: where the disk refused, its earlier state stands.
    pub fn save_all(&self, records: &[&Record]) -> Vec<Result<()>> {
        let places: Vec<_> = records.iter().map(|record| name::place(record)).collect();
        // Of several states of one record only the last is written, and tells of the others too.
        let last: BTreeMap<_, _> = places.iter().zip(0..).collect();
        let mut results: Vec<io::Result<()>> = records.iter().map(|_| Ok(())).collect();
        match self.root() {
            Ok(root) => self.save_into(&root, records, &last, &mut results),
            Err(error) => results.iter_mut().for_each(|result| *result = Err(again(&error))),
        }
        let of = |place: &Place| {
            let result = last.get(place).and_then(|at| results[*at].as_ref().err());
            result.map_or(Ok(()), |error| Err(again(error)))
        };
        places.iter().map(|place| self.told(of(place), "save a record in")).collect()
    }

    fn save_into(
        &self,
        root: &Folder,
        records: &[&Record],
        last: &BTreeMap<&Place, usize>,
        results: &mut [io::Result<()>],
    ) {
        let mut tmps = BTreeMap::new();
        let mut written = BTreeMap::<Day, Vec<(usize, Written)>>::new();
        for (place, at) in last {
            let tmp = tmps
                .entry(&place.owner)
                .or_insert_with(|| self.owner(root, &place.owner).and_then(|of| self.tmp_of(&of)));
            let one = match tmp {
                Ok(tmp) => self.write(root, tmp, records[*at], place),
                Err(error) => Err(again(error)),
            };
            match one {
                Ok(one) => {
                    let day = (place.owner.clone(), place.day.clone());
                    written.entry(day).or_default().push((*at, one));
                }
                Err(error) => results[*at] = Err(error),
            }
        }
        let discard = |owner: &String, one: &Written| {
            // What cannot be removed is written over, or found at the next start.
            let _ = tmps.get(owner).and_then(|tmp| tmp.as_ref().ok()?.remove(&one.name).ok());
        };
        // All are on their way to the disk already.
        for ((owner, _), of_day) in &mut written {
            of_day.retain(|(at, one)| {
                results[*at] = one.file.as_ref().map_or(Ok(()), File::sync_all);
                results[*at].is_ok() || (discard(owner, one), false).1
            });
        }
        for (day, mut of_day) in written {
            let Some(Ok(tmp)) = tmps.get(&day.0) else { continue };
            let folder = match self.day(root, &day) {
                Ok(folder) => folder,
                Err(error) => {
                    for (at, one) in of_day {
                        discard(&day.0, &one);
                        results[at] = Err(again(&error));
                    }
                    continue;
                }
            };
            of_day.retain(|(at, one)| {
                let moved = one.file.as_ref().map(|_| tmp.rename(&one.name, &folder, &one.name));
                results[*at] = moved.unwrap_or(Ok(()));
                results[*at].is_ok() || (discard(&day.0, one), false).1
            });
            if let Err(error) = self.add_heads(&folder, &of_day) {
                of_day.iter().for_each(|(at, _)| results[*at] = Err(again(&error)));
            }
            let stale = of_day.iter().filter(|(_, one)| one.replaces).count();
            // What cannot be done now is done with a later one.
            let _ = self.tidy_heads(root, &day, stale);
        }
    }

    /// Writes `record` into tmp, from where it goes to the disk meanwhile.
    fn write(
        &self,
        root: &Folder,
        tmp: &Folder,
        record: &Record,
        place: &Place,
    ) -> io::Result<Written> {
        let bytes = file::encode(record).map_err(io::Error::other)?;
        let line = Head::from(record).line();
        let name = place.file.clone();
        let folder = root.folder(&place.owner).and_then(|of_owner| of_owner.folder(&place.day));
        let there = folder.ok().and_then(|folder| folder.read(&name, LONGEST_BYTES).ok());
        let replaces = there.is_some();
        if there.is_some_and(|there| there == bytes) {
            return Ok(Written { name, line, file: None, replaces });
        }
        let written = tmp.create(&name).and_then(|mut file| {
            self.rights.of_file(&file)?;
            file.write_all(&bytes)?;
            // Its age is that of what it tells.
            file.set_modified(UNIX_EPOCH + Duration::from_nanos(record.timeline.end_ns()))?;
            start_write_out(&file);
            Ok(file)
        });
        match written {
            Ok(file) => Ok(Written { name, line, file: Some(file), replaces }),
            Err(error) => {
                let _ = tmp.remove(&name);
                Err(error)
            }
        }
    }

    /// The folder of a day, made where it is absent.
    fn day(&self, root: &Folder, (owner, day): &Day) -> io::Result<Folder> {
        let of_owner = root.folder(owner)?;
        let (folder, is_new) = of_owner.make_folder(day)?;
        if is_new {
            self.rights.of_folder(&folder)?;
            of_owner.sync()?;
        }
        Ok(folder)
    }
}

/// The same error, for another record.
fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(
        || io::Error::new(error.kind(), error.to_string()),
        io::Error::from_raw_os_error,
    )
}

/// Has what was written to `file` go to the disk without waiting for it.
fn start_write_out(file: &File) {
    use std::os::fd::AsRawFd;
    // SAFETY: numbers alone, of a file that is open. Where it fails, the wait for the file does it.
    unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
}
