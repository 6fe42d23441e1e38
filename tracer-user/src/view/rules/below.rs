//! Where most of the small files lie that a job opens: the folder that has them below it.

use std::collections::BTreeMap;

use super::{
    Facts,
    by_file::{are_again, is_opened_again},
};
use crate::model::files::{FileCounts, FileUse};

/// From this part of the opens on, it is where they lie.
const MOST: f64 = 0.50;

/// A folder, with how often files below it were opened and how many these are.
pub(super) struct Below<'a> {
    pub path: &'a str,
    pub opens: u64,
    pub files: u64,
}

/// The folder of a path; of the root itself, and of what has none, nothing. The root of a file system of which no mount is
/// known is `…/`.
fn folder(path: &str) -> Option<&str> {
    match path.rsplit_once('/')? {
        ("" | "…", "") => None,
        // Of a file without a name nobody knows it.
        ("…", name) if name.starts_with("inode ") => None,
        ("", _) => Some("/"),
        ("…", _) => path.get(.."…/".len()),
        (folder, _) => Some(folder),
    }
}

/// A folder, with what was done with the files directly in it and how many these are.
type Direct<'a> = (&'a FileUse, u64, FileCounts);

/// What was done with the files directly in each folder of a mount that a record tells, and how many these are; files
/// that are opened again and again are left out.
pub(super) fn direct<'a>(
    facts: &Facts<'a>,
    [fs, mount]: [&str; 2],
) -> BTreeMap<&'a str, (u64, FileCounts)> {
    let folders = without_again(facts).into_iter().filter(|(of, files, counts)| {
        of.fs == fs && of.mount == mount && !are_again(*files, counts.opens)
    });
    folders.map(|(folder, files, counts)| (&*folder.path, (files, counts))).collect()
}

/// Folders whose files are opened again and again, as the mean of them tells: a record lists the foremost files alone.
/// Those are left out.
pub(super) fn opened_again<'a>(facts: &Facts<'a>) -> impl Iterator<Item = Direct<'a>> {
    without_again(facts).into_iter().filter(|(_, files, counts)| are_again(*files, counts.opens))
}

/// All folders, without the files of theirs that are opened again and again and listed.
fn without_again<'a>(facts: &Facts<'a>) -> Vec<Direct<'a>> {
    let folders = facts.totals.files.folders.iter();
    let mut direct: BTreeMap<_, Direct> =
        folders.map(|of| ([&*of.fs, &*of.mount, &*of.path], (of, of.files, of.counts))).collect();
    for file in facts.totals.files.files.iter().filter(|of| is_opened_again(of)) {
        let key = folder(&file.path).map(|path| [&*file.fs, &*file.mount, path]);
        if let Some((_, files, counts)) = key.and_then(|key| direct.get_mut(&key)) {
            *counts = counts.since(&file.counts);
            *files = files.saturating_sub(file.files);
        }
    }
    direct.into_values().collect()
}

/// The lowest folder of a mount below which most opens are that a record tells by folder; files that are opened again
/// and again are left out. `None` where nothing is told.
pub(super) fn most_opened<'a>(facts: &Facts<'a>, mount: [&str; 2]) -> Option<Below<'a>> {
    let mut below: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    let mut all = 0_u64;
    for (path, (files, FileCounts { opens, .. })) in direct(facts, mount) {
        all = all.saturating_add(opens);
        for above in std::iter::successors(Some(path), |path| folder(path)) {
            let sums = below.entry(above).or_default();
            *sums = [sums[0].saturating_add(opens), sums[1].saturating_add(files)];
        }
    }
    let is_most = |opens: u64| opens > 0 && opens as f64 >= MOST * all as f64;
    let most = below.into_iter().filter(|(_, [opens, _])| is_most(*opens));
    // Two that have half each are as low as each other: then the one that comes first by name.
    let lowest =
        most.max_by_key(|(path, [opens, _])| (depth(path), *opens, std::cmp::Reverse(*path)));
    lowest.map(|(path, [opens, files])| Below { path, opens, files })
}

fn depth(path: &str) -> usize {
    path.split('/').filter(|part| !part.is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{info::JobInfo, job::Job, totals::RunTotals};

    fn told(folders: &[(&str, u64, u64)], again: &[(&str, u64)]) -> Option<(String, u64, u64)> {
        let one = |path: &str, opens, files| FileUse {
            path: path.into(),
            files,
            counts: FileCounts { opens, ..FileCounts::default() },
            ..FileUse::default()
        };
        let mut totals = RunTotals::new(Job::default(), JobInfo::default());
        totals.files.folders =
            folders.iter().map(|(path, opens, of)| one(path, *opens, *of)).collect();
        totals.files.files = again.iter().map(|(path, opens)| one(path, *opens, 1)).collect();
        let facts = Facts::new(&totals, false);
        assert!(most_opened(&facts, ["nfs", ""]).is_none(), "another mount's");
        most_opened(&facts, ["", ""]).map(|of| (of.path.to_owned(), of.opens, of.files))
    }

    #[test]
    fn each_folder_above_is_found_up_to_the_root() {
        let above = |path| std::iter::successors(folder(path), |path| folder(path));
        let all = |path| above(path).collect::<Vec<_>>();
        assert_eq!(all("/a/b/c"), ["/a/b", "/a", "/"]);
        assert_eq!(all("…/a/c"), ["…/a", "…/"]);
        assert_eq!([all("memfd:x"), all("…/inode 7")], [[""; 0]; 2]);
    }

    /// Else its files would count once more, with their folder.
    #[test]
    fn a_listed_file_of_a_root_is_taken_from_it_without_a_mount_too() {
        for (root, file) in [("/", "/f"), ("…/", "…/f")] {
            assert_eq!(told(&[(root, 25, 2)], &[(file, 20)]), Some((root.into(), 5, 1)));
        }
    }

    #[test]
    fn the_lowest_folder_with_half_of_the_opens_is_told() {
        let classes = [("/s/train/a", 10, 5), ("/s/train/b", 12, 6), ("/s/etc", 3, 3)];
        assert_eq!(told(&classes, &[]), Some(("/s/train".into(), 22, 11)));
        let one = [("/s/train/a", 25, 5), ("/s/train/b", 12, 6), ("/s/etc", 13, 3)];
        assert_eq!(told(&one, &[]), Some(("/s/train/a".into(), 25, 5)));
        let none = [("/s/train/a", 24, 5), ("/s/train/b", 0, 0), ("/s/etc", 25, 3)];
        assert_eq!(told(&none, &[]), Some(("/s/etc".into(), 25, 3)));
        assert_eq!(
            told(&[("/a", 5, 1), ("/b", 5, 2), ("/", 4, 4)], &[]),
            Some(("/".into(), 14, 7))
        );
        assert_eq!(told(&[("…/a", 5, 1), ("…/b", 4, 2)], &[]), Some(("…/a".into(), 5, 1)));
        assert_eq!(told(&[], &[]), None);
        assert_eq!(told(&[("/a", 0, 1)], &[]), None);
    }

    #[test]
    fn a_file_that_is_opened_again_is_no_reason() {
        let folders = [("/s/index", 900, 2), ("/s/train", 30, 30)];
        assert_eq!(told(&folders, &[("/s/index/i", 890)]), Some(("/s/train".into(), 30, 30)));
        // Nor are files that a record does not list, where all of a folder are opened so often.
        let many = [("/s/index", 1_000, 2), ("/s/train", 30, 30)];
        assert_eq!(told(&many, &[]), Some(("/s/train".into(), 30, 30)));
        assert_eq!(told(&folders, &[]), Some(("/s/index".into(), 900, 2)));
        let folders = [("/s/index", 270, 30), ("/s/train", 30, 30)];
        assert_eq!(told(&folders, &[("/s/index/i", 9)]), Some(("/s/index".into(), 270, 30)));
    }
}
