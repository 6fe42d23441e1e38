//! Whose directories lie in whose: a container in a session, a step in its job.

use std::{collections::BTreeSet, os::unix::ffi::OsStrExt, path::Path};

use super::Tracker;

/// The topmost directories of the jobs that run.
pub struct Roots<'a>(BTreeSet<&'a [u8]>);

impl<'a> Roots<'a> {
    /// Those of `tracker`'s.
    pub fn of(tracker: &'a Tracker) -> Self {
        let running = tracker.jobs().filter(|(_, tracked)| tracked.ended_ns.is_none());
        Self(running.map(|(_, tracked)| tracked.root.as_os_str().as_bytes()).collect())
    }

    /// Whether any lies in the directory `root`.
    pub fn lie_in(&self, root: &Path) -> bool {
        let inside = [root.as_os_str().as_bytes(), b"/"].concat();
        self.0.range(&*inside..).next().is_some_and(|next| next.starts_with(&inside))
    }
}

/// Whether `path` is `root`, or lies in it: both as the kernel writes them, of which [`Path::starts_with`] makes
/// components first.
pub fn lies_in(path: &Path, root: &Path) -> bool {
    let root = root.as_os_str().as_bytes();
    let rest = path.as_os_str().as_bytes().strip_prefix(root);
    rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || root.ends_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_in_itself_and_in_those_above() {
        let in_a_b = ["/a/b", "/a/b/c", "/a/bc", "/a", "/b", "/a/b-c/d"];
        let lie = in_a_b.map(|path| lies_in(Path::new(path), Path::new("/a/b")));
        assert_eq!(lie, [true, true, false, false, false, false]);
        assert!(lies_in(Path::new("/a"), Path::new("/")));
    }

    #[test]
    fn those_below_lie_in_it_and_those_beside_do_not() {
        let roots = ["/a", "/a-b/c", "/a/b/c", "/ab", "/d", "/d.e"].map(str::as_bytes);
        let roots = Roots(roots.into());
        let holding = ["/a", "/a-b", "/a/b", "/a/b/c", "/ab", "/d", "/e"];
        let holding = holding.map(|root| roots.lie_in(Path::new(root)));
        assert_eq!(holding, [true, true, true, false, false, false, false]);
    }
}
