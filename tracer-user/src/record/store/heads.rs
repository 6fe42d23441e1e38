//! The heads of this node's records in a day's folder: appended, and now and then written anew, because only the last
//! line of each record counts.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashSet},
    io::{self, Write},
};

use super::{
    super::{file, head, head::Head, name},
    Store,
    batch::Written,
};
use crate::files::folder::{Folder, is_torn};

/// Longest file of heads that is read, a day's of a user on a node.
pub const LONGEST_BYTES: u64 = 256 << 20;
/// Lines that do not count any more, which are not worth the work.
const FEW: usize = 16;
/// Files of heads that are known.
const MOST_KNOWN: usize = 10_000;

/// What is known of the files of heads that were written to, by owner and day: lines that do not count any more since
/// they were written whole, and how many did then.
#[derive(Debug, Default)]
pub(super) struct Known(RefCell<BTreeMap<(String, String), (usize, usize)>>);

impl Store {
    /// Adds the heads of `all` in `folder`, and sees that they are on the disk.
    pub(super) fn add_heads(&self, folder: &Folder, all: &[(usize, Written)]) -> io::Result<()> {
        let (mut there, mut lines) = (None::<HashSet<Vec<u8>>>, String::new());
        for (_, one) in all {
            // One that is there already may lack its head: its writer was killed between the two.
            let is_told = one.file.is_none()
                && there
                    .get_or_insert_with(|| self.heads_in(folder))
                    .contains(one.line.trim_end().as_bytes());
            if !is_told {
                lines.push_str(&one.line);
            }
        }
        if !lines.is_empty() {
            let mut heads = folder.append(&name::heads(&self.host))?;
            if heads.metadata()?.len() == 0 {
                self.rights.of_file(&heads)?;
            }
            if is_torn(&heads)? {
                // What a node that died left of a line is one of its own.
                lines.insert(0, '\n');
            }
            // By one call: lines of several writers do not mix.
            heads.write_all(lines.as_bytes())?;
            heads.sync_all()?;
        }
        folder.sync()
    }

    /// Writes the heads of a day anew, where `more` lines that do not count any more are too many.
    pub(super) fn tidy_heads(
        &self,
        root: &Folder,
        (owner, day): &(String, String),
        more: usize,
    ) -> io::Result<()> {
        let key = (owner.clone(), day.clone());
        let (stale, count) = {
            let mut known = self.known_heads.0.borrow_mut();
            if known.len() >= MOST_KNOWN {
                known.clear();
            }
            let known = known.entry(key.clone()).or_default();
            known.0 += more;
            *known
        };
        if self.is_only_writer() && stale > FEW.max(count) {
            let count = self.rewrite_heads(root, owner, day)?;
            self.known_heads.0.borrow_mut().insert(key, (0, count));
        }
        Ok(())
    }

    /// Writes the heads of this node's records of a day anew: one for each file that is there. Removes them and the
    /// folders where there is none. Gives how many there are.
    pub(super) fn rewrite_heads(&self, root: &Folder, owner: &str, day: &str) -> io::Result<usize> {
        let of_owner = root.folder(owner)?;
        let folder = of_owner.folder(day)?;
        let own = folder.entries()?.into_iter().map(|(name, _)| name);
        let own: BTreeSet<_> =
            own.filter(|name| name::begin_ns(&self.host, name).is_some()).collect();
        let heads = name::heads(&self.host);
        if own.is_empty() {
            folder.remove(&heads)?;
            self.known_heads.0.borrow_mut().remove(&(owner.to_owned(), day.to_owned()));
            // Where nothing of another node's is in them.
            if of_owner.remove_folder(day).is_ok() && self.is_only_writer() {
                let _ = of_owner.remove_folder(super::TMP);
                if root.remove_folder(owner).is_ok() {
                    self.rights.forget(owner);
                }
            }
            return Ok(0);
        }
        let mut lines = head::last_lines(&folder.read(&heads, LONGEST_BYTES).unwrap_or_default());
        lines.retain(|name, _| own.contains(name));
        for name in &own {
            if !lines.contains_key(name)
                && let Ok(bytes) = folder.read(name, super::LONGEST_BYTES)
                && let Ok(record) = file::decode(&bytes)
            {
                lines.insert(name.clone(), Head::from(&record).line().into_bytes());
            }
        }
        let tmp = self.tmp_of(&of_owner)?;
        let mut file = tmp.create(&heads)?;
        self.rights.of_file(&file)?;
        file.write_all(&lines.values().flatten().copied().collect::<Vec<u8>>())?;
        file.sync_all()?;
        tmp.rename(&heads, &folder, &heads)?;
        folder.sync()?;
        Ok(lines.len())
    }

    /// The lines of this node's heads there.
    fn heads_in(&self, folder: &Folder) -> HashSet<Vec<u8>> {
        let text = folder.read(&name::heads(&self.host), LONGEST_BYTES).unwrap_or_default();
        text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    }
}
