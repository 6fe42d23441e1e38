//! What files may have been opened for of which calls moved nothing: to be mapped. What is used through a mapping is
//! unknown where it was in the page cache; it is no more than the files' size.

use super::{Facts, below::direct, by_file::of_opened_again, files::sum};
use crate::{
    model::{files::FileCounts, group::Group},
    view::file_ops::{added_up, ops},
};

/// Calls and requests that say what a file was opened for.
const USES: [&str; 10] = [
    "read",
    "write",
    "getdents",
    "copy_file_range",
    "sendfile",
    "splice",
    "uring_read",
    "uring_write",
    "aio_read",
    "aio_write",
];

/// Bytes that may have been used through a mapping after each of `opens`, which are without those of files that are opened
/// again and again: none where calls tell what most were for, `None` where nothing does.
pub(super) fn mapped_bytes(
    facts: &Facts,
    mount: [&str; 2],
    groups: &[&Group],
    opens: u64,
) -> Option<u64> {
    let again = of_opened_again(facts, mount);
    let of_again = again.reads.saturating_add(again.writes);
    let uses = sum(groups, &USES, ops).saturating_sub(of_again);
    let folders: Vec<_> = direct(facts, mount).into_values().collect();
    if !is_half(uses, opens) || is_half(faulted(&folders), opened(&folders)) {
        size_bytes(&folders)
    } else {
        Some(0)
    }
}

fn is_half(part: u64, all: u64) -> bool {
    all > 0 && part >= all.div_ceil(2)
}

fn opened(folders: &[(u64, FileCounts)]) -> u64 {
    added_up(folders.iter().map(|(_, counts)| counts.opens))
}

/// Opens after which a page fault may have brought pages: many faults may be of one.
fn faulted(folders: &[(u64, FileCounts)]) -> u64 {
    added_up(folders.iter().map(|(_, counts)| counts.faults.min(counts.opens)))
}

/// Size of the files that half of the opens or more were of, or smaller ones: on average in each folder, since one that
/// is large and opened once makes no others larger.
fn size_bytes(folders: &[(u64, FileCounts)]) -> Option<u64> {
    let half = opened(folders).div_ceil(2);
    let sizes = folders.iter().map(|(files, of)| (of.size_bytes / files.max(&1), of.opens));
    let mut sizes: Vec<_> = sizes.filter(|(_, opens)| *opens > 0).collect();
    sizes.sort_unstable();
    let mut smaller = 0_u64;
    let is_half = |(_, opens): &&(u64, u64)| {
        smaller = smaller.saturating_add(*opens);
        smaller >= half
    };
    sizes.iter().find(is_half).map(|(size_bytes, _)| *size_bytes)
}
