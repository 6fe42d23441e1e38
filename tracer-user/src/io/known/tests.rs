//! What is known of files, without a kernel.

use super::*;

fn key(inode: u64, thread: u64) -> FileKey {
    FileKey { file: FileId { device: 7, generation: 1, inode }, thread }
}

fn cell(made_ns: u64, ops: u64) -> FileCell {
    FileCell { made_ns, ops, time_ns: 10 * ops, size_bytes: 100, ..FileCell::default() }
}

fn name(text: &[u8]) -> FileName {
    let mut name = FileName { length: text.len() as u32, bytes: [0; 252] };
    name.bytes[..text.len()].copy_from_slice(text);
    name
}

fn listed(known: &Known) -> Vec<(String, u64, u64, u64)> {
    let files = known.largest(|_, path| ["ext4".into(), "/m".into(), format!("/m{path}")]).files;
    let mut all: Vec<_> = files
        .into_iter()
        .map(|file| (file.path, file.counts.ops, file.files, file.counts.size_bytes))
        .collect();
    all.sort();
    all
}

#[test]
fn threads_add_up_and_cells_made_anew_count_from_zero() {
    let mut known = Known::default();
    let names = |file: &FileId| (file.inode < 3).then(|| name(b"a\0d\0/\0"));
    known.take(
        0,
        vec![(key(1, 1), cell(5, 10)), (key(1, 2), cell(6, 1)), (key(3, 1), cell(7, 2))],
        names,
    );
    let unnamed = ("/m…/inode 3".to_owned(), 2, 1, 100);
    assert_eq!(listed(&known), [("/m/d/a".into(), 11, 1, 100), unnamed.clone()]);
    // One goes on, and is met in both maps; the other was driven out and came again.
    known.take(
        0,
        vec![(key(1, 1), cell(5, 12)), (key(1, 1), cell(5, 14)), (key(1, 2), cell(9, 3))],
        names,
    );
    assert_eq!(listed(&known), [("/m/d/a".into(), 18, 1, 100), unnamed.clone()]);
    // Another file of the same name, as one that is replaced again and again.
    known.take(0, vec![(key(2, 1), cell(11, 1))], names);
    assert_eq!(listed(&known), [("/m/d/a".into(), 19, 2, 200), unnamed]);
}

#[test]
fn writes_are_shared_where_several_threads_write_between_two_readings() {
    let writer = |inode, thread, made_ns, writes| {
        let cell = FileCell {
            made_ns,
            ops: writes,
            writes,
            written_bytes: 100 * writes,
            write_ns: 7 * writes,
            ..FileCell::default()
        };
        (key(inode, thread), cell)
    };
    let mut known = Known::default();
    let shared = |known: &Known, inode| {
        let counts = known.files[&key(inode, 0).file].counts;
        (counts.writes, counts.shared_writes, counts.shared_written_bytes, counts.shared_write_ns)
    };
    // Alone each, also where one reads what the other wrote.
    known.take(0, vec![writer(1, 1, 1, 5), (key(1, 2), cell(1, 9)), writer(2, 2, 1, 3)], |_| None);
    assert_eq!((shared(&known, 1), shared(&known, 2)), ((5, 0, 0, 0), (3, 0, 0, 0)));
    // The second one joins; of the other file the writer is another, but alone.
    known.take(0, vec![writer(1, 1, 1, 7), writer(1, 2, 5, 4), writer(2, 1, 5, 1)], |_| None);
    assert_eq!((shared(&known, 1), shared(&known, 2)), ((11, 6, 600, 42), (4, 0, 0, 0)));
    // Nothing was done; then a cell is driven out and made anew, which makes no second thread.
    known.take(0, vec![writer(1, 1, 1, 7), writer(1, 2, 5, 4)], |_| None);
    known.take(0, vec![writer(1, 1, 1, 8), writer(1, 1, 9, 2)], |_| None);
    assert_eq!(shared(&known, 1), (14, 6, 600, 42));
}

#[test]
fn beyond_the_bound_the_least_are_kept_by_their_folders() {
    let mut known = Known::default();
    let all = MOST_FILES as u64 + 1;
    let cells = (1..=all).map(|inode| (key(inode, 1), cell(1, inode))).collect();
    known.take(0, cells, |file| Some(name(format!("{}\0d\0/\0", file.inode).as_bytes())));
    assert_eq!(known.files.len(), KEPT_BY_EACH, "time and operations agree");
    let told = known.largest(|_, path| [String::new(), String::new(), path.to_owned()]);
    let [folder] = &told.folders[..] else { panic!("{:?}", told.folders) };
    assert_eq!((&*folder.path, folder.files, folder.counts.ops), ("/d", all, all * (all + 1) / 2));
    assert_eq!(told.files[0].counts.ops, all, "the largest first");
    assert_eq!(told.files.len(), 64);
    assert_eq!(told.lost, LostFiles { ops: 0, files: all - KEPT_BY_EACH as u64 });
}

#[test]
fn what_was_driven_out_or_has_no_folder_is_lost() {
    let mut known = Known::default();
    let told = |known: &Known| known.largest(|_, path| [String::new(), "/".into(), path.into()]);
    let lost = |known: &Known| told(known).lost;
    known.take(10, vec![(key(1, 1), cell(5, 10))], |_| Some(name(b"a\0d\0/\0")));
    assert_eq!(lost(&known), LostFiles::default());
    // The cell was driven out after two operations more, and another's before it was read.
    known.take(19, vec![(key(1, 1), cell(9, 4))], |_| None);
    assert_eq!(lost(&known), LostFiles { ops: 5, files: 0 });
    // One that ended while the cells were read makes no loss less than it is.
    known.take(19, vec![(key(1, 1), cell(9, 4)), (key(2, 1), cell(12, 1))], |_| None);
    known.take(21, vec![(key(1, 1), cell(9, 5)), (key(2, 1), cell(12, 1))], |_| None);
    assert_eq!(lost(&known).ops, 5);
    // Files without a name, of which the least are put away.
    let all = MOST_FILES as u64;
    let cells = (10..10 + all).map(|inode| (key(inode, 1), cell(20, 1))).collect();
    known.take(21 + all, cells, |_| None);
    // But for those that are told by themselves.
    let ops_told = told(&known).files.iter().map(|file| file.counts.ops).sum::<u64>();
    assert_eq!(told(&known).files.len(), 64);
    assert_eq!(lost(&known), LostFiles { ops: 21 + all - ops_told, files: 0 });
}

#[test]
fn what_lies_in_memory_alone_is_a_file_in_no_folder() {
    let mut known = Known::default();
    known.take(3, vec![(key(1, 1), cell(5, 3))], |_| Some(name(b"memfd:a/b\0")));
    let told = known.largest(|_, path| [String::new(), String::new(), path.to_owned()]);
    assert_eq!((told.files.len(), told.folders.len()), (1, 0));
    assert_eq!(told.lost, LostFiles::default(), "its file tells of it");
}

#[test]
fn folders_of_paths() {
    for (path, of) in [("/a/b", "/a"), ("/a", "/"), ("/", "/"), ("…/a/b", "…/a")] {
        assert_eq!(folder(path), Some(of), "{path}");
    }
    for path in ["memfd:x", "memfd:/a/b", "SYSV00000000", "…/a…"] {
        assert_eq!(folder(path), None, "{path}");
    }
}
