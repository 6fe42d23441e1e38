//! Live ring: what is told of single files against a program that knows what it does to each. All numbers are exact.

mod instances;

use std::{fs, path::Path, process::Command};

use jobtrace_tests::{
    agree::{Agreement, tried_again},
    daemon::files,
    rig::{
        mount::{Ext4, Tmpfs},
        overlay::Overlay,
    },
    sibling::Sibling,
    traced::{Traced, program},
};
use serde_json::Value;
use tracer_ebpf::tables::io_file::HEAVY_OPS;

const NAMED_FILES: &str = env!("CARGO_BIN_EXE_named_files");
const MIB: u64 = 1 << 20;
/// Files of a moment of which all find room, and many more than there is room for.
const FEW: &str = "300";
const MANY: &str = "30000";
/// Opens of the workload besides two for each of these.
const OTHER_OPENS: u64 = 9;
/// Of a name, what no output may show as it is, and what a page may not.
const HOSTILE: [&str; 2] = ["\u{1b}[31m", "<br>\n"];
const MARKUP: &str = "<script>alert";

/// A new folder of `mount`.
fn folder(mount: &Path, name: &str) -> String {
    let folder = mount.join(name);
    fs::create_dir(&folder).unwrap();
    folder.to_str().unwrap().to_owned()
}

/// The rows of `key`.
fn rows<'a>(job: &'a Traced, key: &str) -> &'a [Value] {
    job.json[key].as_array().map_or(&[], Vec::as_slice)
}

/// The row of `path`; none is told twice.
fn row<'a>(job: &'a Traced, key: &str, path: &str) -> &'a Value {
    let mut of_path = rows(job, key).iter().filter(|row| row["path"] == path);
    let row = of_path.next().unwrap_or_else(|| panic!("no {path} in {:?}", rows(job, key)));
    assert!(of_path.next().is_none(), "{path} is told twice");
    row
}

/// Compares each file that the workload, in `own`, reports of, if it says of so many operations.
fn agree_by_name(job: &Traced, own: &str, least_ops: u64, agree: &mut Agreement) {
    let report = job.read_report(&[NAMED_FILES]);
    for (fact, truth) in &report.facts {
        let (name, field) = fact.split_once('.').unwrap();
        if report.facts[&format!("{name}.ops")] < least_ops {
            continue;
        }
        let row = row(job, "io_files", &format!("{own}/{name}"));
        agree.exact(fact, row[field].as_u64().unwrap(), *truth);
        let number = |field: &str| row[field].as_u64().unwrap();
        agree.between(&format!("{name}: waited"), number("waited_ns"), 0..=number("time_ns"));
    }
}

/// All that was done to files is no more than all that was done, by mount.
fn agree_with_totals(job: &Traced, mount: &str, short: u64, agree: &mut Agreement) {
    let of_mount = |row: &&Value| row["mount"] == mount;
    let sum = |key: &str, field: &str| -> u64 {
        rows(job, key).iter().filter(of_mount).map(|row| row[field].as_u64().unwrap_or(0)).sum()
    };
    for (key, field) in ["io_files", "io_folders"]
        .into_iter()
        .flat_map(|key| ["ops", "consecutive", "sequential", "random"].map(|field| (key, field)))
    {
        agree.between(&format!("{field} of {key}"), sum(key, field), 1..=sum("io", field));
    }
    let opens = rows(job, "io").iter().filter(of_mount).filter(|row| row["op"] == "open");
    let opens: u64 = opens.map(|row| row["ops"].as_u64().unwrap()).sum();
    agree.exact("opens on the mount", opens, 2 * short + OTHER_OPENS);
}

/// The workload on `mount`, beside the same in another folder that is not the job's.
fn known_files(mount: &Path) {
    let (own, beside) = (folder(mount, "own"), folder(mount, "beside"));
    let again = format!("rm -rf {beside}/*; exec {NAMED_FILES} {beside} {FEW}");
    let sibling = Sibling::start(&["sh", "-c", &again]);
    let job = Traced::run(&["--io"], &[NAMED_FILES, &own, FEW]);
    sibling.end();
    let mut agree = Agreement::new();
    agree_by_name(&job, &own, 1, &mut agree);
    let short = row(&job, "io_folders", &format!("{own}/short"));
    for (field, truth) in [("files", 300), ("opens", 600), ("ops", 1_800), ("read_bytes", 30_000)] {
        agree.exact(&format!("short: {field}"), short[field].as_u64().unwrap(), truth);
    }
    agree_with_totals(&job, mount.to_str().unwrap(), 300, &mut agree);
    let is_beside = |row: &&Value| row["path"].as_str().unwrap().starts_with(&beside);
    let of_others = rows(&job, "io_files").iter().filter(is_beside).count();
    agree.exact("files of others", of_others as u64, 0);
    agree.end();
}

#[test]
fn on_ext4_each_file_is_told_by_its_name() {
    known_files(Ext4::mount(64 * MIB).unwrap().path());
}

#[test]
fn on_tmpfs_each_file_is_told_by_its_name() {
    known_files(Tmpfs::mount(64 * MIB).unwrap().path());
}

#[test]
fn on_an_overlay_each_file_is_told_by_its_name() {
    let disk = Tmpfs::mount(64 * MIB).unwrap();
    known_files(Path::new(Overlay::writable(disk.path()).path()));
}

/// Many times more files than there is room for, between two uses of one that does more, while jobtrace, stopped, reads
/// none of them.
#[test]
fn many_files_of_a_moment_drive_out_no_large_one_and_totals_stay_exact() {
    let disk = Tmpfs::mount(64 * MIB).unwrap();
    let own = folder(disk.path(), "own");
    let unread = format!("kill -STOP $PPID && {NAMED_FILES} {own} {MANY} && kill -CONT $PPID");
    let job = Traced::run(&["--io"], &["sh", "-c", &unread]);
    let mut agree = Agreement::new();
    agree_by_name(&job, &own, HEAVY_OPS, &mut agree);
    agree_with_totals(&job, disk.path().to_str().unwrap(), MANY.parse().unwrap(), &mut agree);
    let short = row(&job, "io_folders", &format!("{own}/short"));
    // What is driven out between two readings is told of no file.
    agree.between("short files", short["files"].as_u64().unwrap(), 1_000..=30_000);
    // How much that was is told: of six operations on each all but closes, two, whose cells may be gone already.
    let lost = job.json["io_lost"]["ops"].as_u64().unwrap_or(0);
    let all = short["ops"].as_u64().unwrap() + lost;
    agree.between(
        "operations in the folder, and lost ones",
        all,
        120_000..=180_000 + 6 * OTHER_OPENS,
    );
    assert!(lost > 0, "all files found room: more are needed here");
    agree.between("rows", rows(&job, "io_files").len() as u64, 64..=4 * 64);
    agree.end();
}

/// Files that come faster than their names can be asked for: what is told of none of them is lost.
#[test]
fn of_many_files_of_a_moment_what_is_not_told_is_lost() {
    const FILES: u64 = 12_000;
    const OPEN_AND_CLOSE: &str = "\
import os, sys
os.chdir(sys.argv[1])
for number in range(int(sys.argv[2])):
    os.close(os.open(str(number), os.O_RDWR | os.O_CREAT))
";
    let disk = Tmpfs::mount(64 * MIB).unwrap();
    let own = folder(disk.path(), "own");
    let words = ["python3", "-c", OPEN_AND_CLOSE, &own, &FILES.to_string()];
    let job = Traced::run(&["--io"], &words);
    let told = row(&job, "io_folders", &own)["ops"].as_u64().unwrap();
    let lost = job.json["io_lost"]["ops"].as_u64().unwrap_or(0);
    let mut agree = Agreement::new();
    agree.between("told", told, FILES..=2 * FILES);
    // Python uses its own files 2,300 times, whose names may be driven out before they are asked for.
    agree.between("told and lost", told + lost, 2 * FILES..=2 * FILES + 5_000);
    agree.end();
}

/// Each that is started meets them anew: many more pairs of a program and a file than there is room for, of few files.
#[test]
fn few_files_of_many_short_programs_are_all_told() {
    tried_again(few_files_of_many_programs);
}

fn few_files_of_many_programs() {
    const PROGRAMS: u64 = 600;
    const FILES: u64 = 25;
    let disk = Tmpfs::mount(64 * MIB).unwrap();
    let own = folder(disk.path(), "own");
    let names: Vec<String> = (0..FILES).map(|number| format!("{own}/{number}")).collect();
    names.iter().for_each(|name| fs::write(name, [b'x'; 100]).unwrap());
    let each =
        format!("i=0; while [ $i -lt {PROGRAMS} ]; do cat {own}/* > /dev/null; i=$((i + 1)); done");
    let job = Traced::run(&["--io"], &["sh", "-c", &each]);
    let mut agree = Agreement::new();
    for name in &names {
        let row = row(&job, "io_files", name);
        for (field, truth) in [("opens", PROGRAMS), ("read_bytes", 100 * PROGRAMS)] {
            agree.exact(&format!("{name}: {field}"), row[field].as_u64().unwrap(), truth);
        }
    }
    agree.end();
    assert!(job.json["io_lost"].is_null(), "{}", job.json["io_lost"]);
}

/// Names are in the record and what is made of it, harmless to look at, and in no line.
#[test]
fn names_are_harmless_and_in_no_line() {
    let disk = Tmpfs::mount(64 * MIB).unwrap();
    let own = folder(disk.path(), "own");
    let program = program().unwrap();
    let records = tempfile::tempdir().unwrap();
    let (lines, records) = (records.path().join("lines"), records.path().join("records"));
    let [lines, records] = [lines, records].map(|path| path.to_str().unwrap().to_owned());
    let jobtrace = |arguments: &[&str]| {
        let output = Command::new(&program).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let run = ["run", "--io", "--name", "dive", "--save", &records, "--out", &lines, "--"];
    let [_, summary] = jobtrace(&[&run[..], &[NAMED_FILES, &own, "20"]].concat());
    let page = tempfile::NamedTempFile::new().unwrap();
    let html = page.path().to_str().unwrap();
    let of_it = ["report", "dive", "--from", &records];
    let [report, _] = jobtrace(&of_it);
    let [json, _] = jobtrace(&[&of_it[..], &["--json"]].concat());
    jobtrace(&[&of_it[..], &["--html", html]].concat());
    let html = fs::read_to_string(html).unwrap();
    for text in [&summary, &report, &html, &json] {
        assert!(text.contains("/own/patterns"), "no file in {text}");
        for hostile in HOSTILE {
            assert!(!text.contains(hostile), "{hostile:?} in {text}");
        }
    }
    assert!(!html.contains(MARKUP) && html.contains("alert(1)"), "told of, as text: {html}");
    assert!(report.contains("alert(1)<br> "), "{report}");
    let mut written = 0;
    for file in files::list(Path::new(&lines)).unwrap() {
        let text = files::text(&file).unwrap();
        written += text.matches("job_io,").count();
        for name in ["patterns", "synced", "script"] {
            assert!(!text.contains(name), "{name} in {text}");
        }
    }
    assert!(written > 0, "there are lines of operations");
}
