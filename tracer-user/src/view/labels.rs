//! First cells of a table as far as there is room for: rows that differ have labels that differ, where any shortening does
//! that.

use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation;

use crate::base::text::{end_of, middle, truncate, width};

/// A way to shorten `name` to columns, so that it is told from `others`.
type Shorten = fn(name: &str, others: &[&str], columns: usize) -> String;

/// The ways: the first one that tells a row from all others is taken.
const WAYS: [Shorten; 4] =
    [usual, |name, _, columns| end(name, columns), before_common_end, after_common_begin];

/// Each of `names` in at most `columns`.
pub fn labels(names: &[&str], columns: usize) -> Vec<String> {
    let mut labels: Vec<String> = names.iter().map(|name| usual(name, &[], columns)).collect();
    for shorten in &WAYS[1..] {
        let tried: Vec<Option<String>> = names
            .iter()
            .zip(&labels)
            .map(|(name, label)| {
                let others = names.iter().zip(&labels);
                let same = others.filter(|(other, of)| *of == label && *other != name);
                let same: Vec<&str> = same.map(|(other, _)| *other).collect();
                (!same.is_empty()).then(|| shorten(name, &same, columns))
            })
            .collect();
        let is_own = |new: &String| {
            let taken = names.iter().zip(&tried).filter(|(_, other)| other.as_ref() == Some(new));
            let taken: BTreeSet<_> = taken.map(|(name, _)| name).collect();
            taken.len() == 1 && !labels.contains(new) && width(new) <= columns
        };
        let found: Vec<_> = tried.iter().map(|new| new.clone().filter(is_own)).collect();
        for (label, found) in labels.iter_mut().zip(found) {
            *label = found.unwrap_or_else(|| std::mem::take(label));
        }
    }
    labels
}

/// Both ends; of a path that has no room for them its end, which tells more.
fn usual(name: &str, _: &[&str], columns: usize) -> String {
    let both = middle(name, columns);
    let has_no_end = !both.ends_with(|last| name.ends_with(last));
    if has_no_end && name.starts_with(['/', '…']) { end(name, columns) } else { both }
}

/// The end of `name`.
fn end(name: &str, columns: usize) -> String {
    if width(name) <= columns || columns == 0 {
        return truncate(name, columns);
    }
    format!("…{}", end_of(name, columns - 1))
}

/// The end of what is before the end that it shares with all `others`.
fn before_common_end(name: &str, others: &[&str], columns: usize) -> String {
    let common = |other: &&str| {
        let alike = name.graphemes(true).rev().zip(other.graphemes(true).rev());
        alike.take_while(|(one, other)| one == other).map(|(one, _)| one.len()).sum::<usize>()
    };
    let shared = others.iter().map(common).min().unwrap_or(0);
    let own = &name[..name.len() - shared];
    if shared == 0 { end(own, columns) } else { end(own, columns.saturating_sub(1)) + "…" }
}

/// What follows the begin that it shares with the one of `others` that is most like it.
fn after_common_begin(name: &str, others: &[&str], columns: usize) -> String {
    let common = |other: &&str| {
        let alike = name.graphemes(true).zip(other.graphemes(true));
        alike.take_while(|(one, other)| one == other).map(|(one, _)| one.len()).sum::<usize>()
    };
    let shared = others.iter().map(common).max().unwrap_or(0);
    format!("…{}", truncate(&name[shared..], columns.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_its_end_and_another_name_its_begin_where_there_is_no_room_for_both() {
        let name = "/data/projects/with/a/long/name/model";
        assert_eq!(
            labels(&[name, "write on lustre (/scratch)", "the rest"], 16),
            ["…long/name/model", "write on lustre…", "the rest"]
        );
        assert_eq!(labels(&[name], 24), ["/data/p…/long/name/model"]);
        assert_eq!(labels(&[name], 80), [name]);
    }

    #[test]
    fn rows_that_differ_have_labels_that_differ() {
        type Name = fn(&str) -> String;
        let alike = |differ: Name| ["os", "re", "site"].map(differ);
        let places: [(Name, usize, [&str; 3]); 3] = [
            (
                |of| format!("/data/project/{of}"),
                17,
                ["/data/project/os", "/data/project/re", "…ata/project/site"],
            ),
            (
                |of| format!("/root/.pyenv/lib/python3.11/__pycache__/{of}.cpython-311.opt-1.pyc"),
                20,
                ["….11/__pycache__/os…", "….11/__pycache__/re…", "…1/__pycache__/site…"],
            ),
            (
                |of| format!("/root/.pyenv/{of}/lib/python3.11/site-packages/numpy/core"),
                20,
                ["/root/.pyenv/os…", "/root/.pyenv/re…", "/root/.pyenv/site…"],
            ),
        ];
        for (differ, columns, expected) in places {
            let names = alike(differ);
            let names = names.each_ref().map(String::as_str);
            let labels = labels(&names, columns);
            assert_eq!(labels, expected);
            assert!(labels.iter().all(|label| width(label) <= columns));
        }
    }

    #[test]
    fn rows_that_are_equal_have_one_label_and_no_room_is_no_panic() {
        let long = "/a/name/that/is/long/enough/to/be/cut";
        let both = labels(&[long, long], 20);
        assert_eq!(both[0], both[1]);
        for columns in 0..30 {
            let names =
                [long, "/a/name/that/is/long/enough/to/be/cup", "計算計算計算計算計算計算x"];
            assert!(labels(&names, columns).iter().all(|label| width(label) <= columns));
        }
    }
}
