//! Live ring: the example of docs/teaching that is taken apart by file. Its commands run as they are written there, and
//! what they print is what lies beside it, as far as it does not depend on the machine.

use std::{fs, path::Path, process::Command};

use jobtrace_tests::{agree::tried_again, traced::program, work::Pages};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/teaching");
const SECTION: &str = "## From slow to mended, by file";
/// What a report of operations on files has, each with a head of its own. That of the slowest ones has as many columns as
/// there is room for.
const TABLES: [&str; 5] =
    ["I/O by mount and operation", "Files", "Folders", "I/O by program", "I/O by thread"];
const READ_AGAIN: &str = "and 63 other files again: 12.1 GiB read of 7.92 MiB";
const OPENED_AGAIN: &str = "and 63 other files again: 100k times";

fn text(name: &str) -> String {
    fs::read_to_string(format!("{FOLDER}/{name}")).unwrap()
}

/// Its commands, in their order.
fn commands() -> Vec<String> {
    let page = text("README.md");
    let section = page.split(SECTION).nth(1).unwrap();
    let quoted = section.split('`').skip(1).step_by(2);
    let quoted = quoted.map(|words| words.split_whitespace().collect::<Vec<_>>().join(" "));
    let starts = ["python3 ", "jobtrace run --io ", "jobtrace report "];
    quoted.filter(|words| starts.iter().any(|start| words.starts_with(start))).collect()
}

/// What `command` prints in `folder`, as a user's shell runs it.
fn printed(command: &str, folder: &Path) -> String {
    let program = program().unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", Path::new(&program).parent().unwrap().display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The tables of a report with the heads of their columns.
fn heads(report: &str) -> Vec<[String; 2]> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let of_table = |title: &&str| {
        let mut lines = report.lines().skip_while(|line| line.split("  ").next() != Some(title));
        Some([(*title).to_owned(), {
            lines.next()?;
            words(lines.next()?)
        }])
    };
    TABLES.iter().filter_map(of_table).collect()
}

/// How often files of the folder with 64 of them were opened, and what was read of them.
fn of_index(report: &str) -> [String; 2] {
    let (_, folders) = report.split_once("\nFolders").expect("a table of folders");
    let row = folders.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = row.into_iter().find(|row| row.get(1) == Some(&"64")).expect("the index's folder");
    [row[2].to_owned(), row[4..6].join(" ")]
}

/// A report as one line, whatever its width.
fn sentences(report: &str) -> String {
    report.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_example_of_the_documents_runs_as_it_is_written() {
    let commands = commands();
    assert_eq!(commands.len(), 5, "an index, and two runs with their reports: {commands:?}");
    tried_again(|| {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for script in fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().path()) {
            if script.extension().is_some_and(|end| end == "py") {
                fs::copy(&script, folder.path().join(script.file_name().unwrap())).unwrap();
            }
        }
        let mut printed = vec![printed(&commands[0], folder.path())];
        // What is read anew from a slow disk takes the time that opens have here.
        let files = fs::read_dir(folder.path().join("index")).unwrap();
        let _held: Vec<_> = files.map(|file| Pages::held_file(&file.unwrap().path())).collect();
        printed.extend(commands[1..].iter().map(|words| self::printed(words, folder.path())));
        let (slow, mended) = (&printed[2], &printed[4]);
        let shown = ["look-up.txt", "look-up-mended.txt"].map(text);
        for (report, shown) in [slow, mended].into_iter().zip(&shown) {
            assert_eq!(heads(report), heads(shown));
            assert_eq!(heads(report).len(), TABLES.len(), "{report}");
            assert_eq!(of_index(report), of_index(shown));
        }
        assert_eq!(of_index(slow), ["100k", "12.1 GiB"]);
        assert_eq!(of_index(mended), ["64", "7.92 MiB"]);
        for quote in [READ_AGAIN, OPENED_AGAIN] {
            for report in [slow, &shown[0]] {
                assert!(sentences(report).contains(quote), "{quote}: {report}");
            }
            for report in [mended, &shown[1]] {
                assert!(!sentences(report).contains("files again:"), "{report}");
            }
        }
    });
}
