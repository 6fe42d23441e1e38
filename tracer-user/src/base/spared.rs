//! Files that stay open for speed alone: as many as are to spare.

use std::{
    ops::Deref,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use super::open_files;

/// How many are open, of all kinds.
static ALL: AtomicU64 = AtomicU64::new(0);

/// Those of one kind.
#[derive(Debug)]
pub struct Kind {
    open: AtomicU64,
    most: u64,
}

impl Kind {
    /// At most `most` of it stay open.
    pub const fn new(most: u64) -> Self {
        Self { open: AtomicU64::new(0), most }
    }

    /// Whether no more may stay open. Enough is left for all else, banks of slots that are still to come among it.
    pub fn is_full(&self) -> bool {
        let is_over = |spare| ALL.load(Relaxed) >= spare;
        self.open.load(Relaxed) >= self.most || open_files::to_spare().is_some_and(is_over)
    }

    /// Keeps `file` where it may be kept.
    pub fn keep<T>(&'static self, file: T) -> Option<Spared<T>> {
        (!self.is_full()).then(|| {
            self.open.fetch_add(1, Relaxed);
            ALL.fetch_add(1, Relaxed);
            Spared { file, kind: self }
        })
    }
}

/// A file that counts among those of its kind.
#[derive(Debug)]
pub struct Spared<T> {
    file: T,
    kind: &'static Kind,
}

impl<T> Deref for Spared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.file
    }
}

impl<T> Drop for Spared<T> {
    fn drop(&mut self) {
        self.kind.open.fetch_sub(1, Relaxed);
        ALL.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_lets_go_makes_room() {
        static TWO: Kind = Kind::new(2);
        let first = TWO.keep("a").unwrap();
        let second = TWO.keep("b").unwrap();
        assert_eq!((*first, *second), ("a", "b"));
        assert!(TWO.is_full() && TWO.keep("c").is_none());
        drop(first);
        assert!(!TWO.is_full());
        assert!(TWO.keep("c").is_some());
    }
}
