//! Live ring: the slowest operations, and what was done by thread and by program, against a workload that knows what
//! it does, on a file system that answers late.

use std::{
    fs::{self, OpenOptions},
    path::Path,
    process::Command,
    time::Duration,
};

use jobtrace::base::clock::wall_ns;
use jobtrace_tests::{
    account::Report,
    agree::Agreement,
    operations,
    rig::{
        fuse::{FILE, Fuse, Request},
        mount::Tmpfs,
    },
    sibling::Sibling,
    traced::{Traced, program},
};
use serde_json::Value;
use tracer_ebpf::tables::io_slow::SLOWEST;

const SLOW_OPS: &str = env!("CARGO_BIN_EXE_slow_ops");
const MIB: u64 = 1 << 20;
/// How late what is answered.
const READ: Duration = Duration::from_millis(400);
const SYNC: Duration = Duration::from_millis(300);
const LOOKUP: Duration = Duration::from_millis(200);
/// What the wall clock of one reading may be off by: two clocks are read one after the other.
const CLOCKS_NS: u64 = 50_000_000;
/// Of names, what no output may show as it is, and what a page may not.
const HOSTILE: [&str; 3] = ["\u{1b}[31m", "\u{1b}[2J", "<script>\n"];
const MARKUP: [&str; 2] = ["<script>", "<b>"];

fn late() -> Fuse {
    let delays = [(Request::Read, READ), (Request::Sync, SYNC), (Request::Lookup, LOOKUP)];
    Fuse::mount(&delays).unwrap()
}

fn folder(mount: &Path, name: &str) -> String {
    let folder = mount.join(name);
    fs::create_dir(&folder).unwrap();
    folder.to_str().unwrap().to_owned()
}

fn rows<'a>(json: &'a Value, key: &str) -> &'a [Value] {
    json[key].as_array().map_or(&[], Vec::as_slice)
}

/// The one row that is `wanted`.
fn one<'a>(what: &str, rows: &'a [Value], wanted: impl Fn(&Value) -> bool) -> &'a Value {
    let mut found = rows.iter().filter(|row| wanted(row));
    let row = found.next().unwrap_or_else(|| panic!("no {what} in {rows:?}"));
    assert!(found.next().is_none(), "{what} is told twice: {rows:?}");
    row
}

/// `row` is the operation that the workload calls `name`, which was answered after `delay` at the soonest.
fn agree_on(row: &Value, name: &str, delay: Duration, report: &Report, agree: &mut Agreement) {
    let fact = |field: &str| report.facts[&format!("{name}.{field}")];
    let number = |field: &str| row[field].as_u64().unwrap();
    let (from, until) = (fact("from"), fact("until"));
    let took = delay.as_nanos() as u64..=until - from;
    agree.between(&format!("{name}: took"), number("took_ns"), took);
    agree.between(&format!("{name}: began"), number("begin"), from - CLOCKS_NS..=until);
    agree.exact(&format!("{name}: thread"), number("thread"), fact("thread"));
    assert_eq!(row["waited"], true, "{row}");
}

#[test]
fn slow_operations_are_told_with_their_file_place_and_thread() {
    let (disk, own, other) = (Tmpfs::mount(64 * MIB).unwrap(), late(), late());
    let (amounts, beside) = (folder(disk.path(), "own"), folder(disk.path(), "beside"));
    let sibling = Sibling::start(&[SLOW_OPS, &other.file(FILE), &beside]);
    let file = own.file(FILE);
    let (job, report) = Traced::report(&["--io"], &[SLOW_OPS, &file, &amounts]);
    sibling.end();
    let mut agree = Agreement::new();
    let slowest = rows(&job.json, "io_slowest");
    agree.exact("slowest operations", slowest.len() as u64, SLOWEST as u64);
    let took = |row: &Value| row["took_ns"].as_u64().unwrap();
    assert!(slowest.windows(2).all(|two| took(&two[0]) >= took(&two[1])), "{slowest:?}");
    let is = |op: &'static str| move |row: &Value| row["op"] == op && row["fs"] == "fuse";
    let read = one("read", slowest, is("read"));
    agree_on(read, "read", READ, &report, &mut agree);
    assert_eq!((&read["path"], &read["program"]), (&file.into(), &"slow reader".into()));
    agree.exact("read: offset", read["offset"].as_u64().unwrap(), 20_480);
    agree.exact("read: bytes", read["bytes"].as_u64().unwrap(), 4_096);
    let fsync = one("fsync", slowest, is("fsync"));
    agree_on(fsync, "fsync", SYNC, &report, &mut agree);
    assert_eq!((&fsync["path"], &fsync["program"]), (&read["path"], &"slow_ops".into()));
    assert!(fsync.get("offset").is_none() && fsync.get("bytes").is_none(), "{fsync}");
    agree.exact(
        "process of both",
        fsync["process"].as_u64().unwrap(),
        fsync["thread"].as_u64().unwrap(),
    );
    assert_eq!(fsync["process"], read["process"]);
    let failed = |row: &Value| row["op"] == "open" && row["error"] == "ENOENT" && is("open")(row);
    let missing = one("missing file", slowest, failed);
    agree_on(missing, "missing", LOOKUP, &report, &mut agree);
    assert_eq!(missing["path"], own.file("no\u{1b}[31m<script>\n"));
    let opened = slowest.iter().filter(|row| is("open")(row) && row["path"] == read["path"]);
    agree.exact("opens of the slow file", opened.count() as u64, 2);
    // A second was waited for pipes, of which one has a name: making and removing that is an operation on a path.
    agree.between("time of pipes", report.facts["pipes.took_ns"], 1_000_000_000..=u64::MAX);
    let is_pipes = |row: &&Value| {
        let is_fifo = row["path"].as_str().is_some_and(|path| path.ends_with("/fifo"));
        let by_path = ["mkdir", "unlink", "stat"].iter().any(|op| row["op"] == *op);
        row["fs"] == "pipefs" || is_fifo && !by_path
    };
    agree.exact("operations on pipes", slowest.iter().filter(is_pipes).count() as u64, 0);
    let of_others = [other.path().to_str().unwrap(), &beside];
    let is_others = |row: &&Value| {
        let path = row["path"].as_str().unwrap_or_default();
        of_others.iter().any(|other| path.starts_with(other))
    };
    agree.exact("operations of others", slowest.iter().filter(is_others).count() as u64, 0);
    agree_by_thread(&job, &report, &mut agree);
    operations::over_time(&mut agree, &job.json);
    let long = job.json["io_latency"]["columns"].as_array().unwrap().iter();
    // From 2 to the power of 26 nanoseconds on: 67 ms.
    let long = long.flat_map(|column| &column.as_array().unwrap()[8..]).filter_map(Value::as_u64);
    let listed = slowest.iter().filter(|row| took(row) >= 1 << 26).count() as u64;
    agree.exact("long operations over time", long.sum(), listed);
    agree.end();
}

/// Each thread's own, and all of them together.
fn agree_by_thread(job: &Traced, report: &Report, agree: &mut Agreement) {
    let threads = rows(&job.json, "io_threads");
    for number in 1..=4 {
        let fact = |field: &str| report.facts[&format!("{number}.{field}")];
        let thread = one("thread", threads, |row| row["thread"].as_u64() == Some(fact("thread")));
        assert_eq!(thread["program"], format!("w\u{1b}[2J<b>{number}"), "{thread}");
        for field in ["ops", "read_bytes", "written_bytes"] {
            let name = format!("thread {number}: {field}");
            agree.exact(&name, thread[field].as_u64().unwrap(), fact(field));
        }
        let number = |field: &str| thread[field].as_u64().unwrap();
        agree.between("waited", number("waited_ns"), 0..=number("time_ns"));
        agree.between("metadata", number("metadata_ns"), 1..=number("time_ns"));
    }
    let reader = one("reader", threads, |row| row["program"] == "slow reader");
    // An open, a read, a close.
    agree.exact("reader: ops", reader["ops"].as_u64().unwrap(), 3);
    agree.exact("reader: bytes", reader["read_bytes"].as_u64().unwrap(), 4_096);
    let least = (READ + LOOKUP).as_nanos() as u64;
    agree.between(
        "reader: time",
        reader["time_ns"].as_u64().unwrap(),
        least..=least + 60_000_000_000,
    );
    let processes: std::collections::BTreeSet<_> =
        threads.iter().map(|row| row["process"].as_u64()).collect();
    agree.exact("processes", processes.len() as u64, 1);
    agree_with_totals(&job.json, agree);
}

/// Programs are all that was done on file systems that have files.
fn agree_with_totals(json: &Value, agree: &mut Agreement) {
    let sum = |rows: &[&Value], field: &str| -> u64 {
        rows.iter().map(|row| row[field].as_u64().unwrap_or(0)).sum()
    };
    let of_files = |row: &&Value| {
        let fs = row["fs"].as_str().unwrap();
        !["pipefs", "sockfs", "anon_inode", "chardev"].contains(&fs)
    };
    let io: Vec<_> = rows(json, "io").iter().filter(of_files).collect();
    let programs: Vec<_> = rows(json, "io_programs").iter().collect();
    let threads: Vec<_> = rows(json, "io_threads").iter().collect();
    let bytes = |rows: &[&Value]| sum(rows, "read_bytes") + sum(rows, "written_bytes");
    // What is beyond are the named pipes' own, which lie on a file system too: opened, read, written, closed.
    let beyond = sum(&io, "ops").saturating_sub(sum(&programs, "ops"));
    agree.between("operations in no program", beyond, 0..=8);
    agree.between("bytes in no program", sum(&io, "bytes") - bytes(&programs), 0..=2);
    for field in ["ops", "time_ns", "waited_ns", "metadata_ns", "read_bytes", "written_bytes"] {
        agree.exact(&format!("{field} of threads"), sum(&threads, field), sum(&programs, field));
    }
}

#[test]
fn each_program_has_its_own_operations_also_where_it_replaces_another() {
    let disk = Tmpfs::mount(64 * MIB).unwrap();
    let file = disk.path().join("data");
    fs::write(&file, vec![7; MIB as usize]).unwrap();
    let file = file.to_str().unwrap();
    let script = format!(
        "export LC_ALL=C; cat {file} {file} >{file}.1; dd if={file} of={file}.2 bs=64k 2>{file}.3; exec cat {file} >{file}.4"
    );
    let job = Traced::run(&["--io"], &["sh", "-c", &script]);
    assert!(job.output.status.success(), "{:?}", job.output);
    let mut agree = Agreement::new();
    let programs = rows(&job.json, "io_programs");
    let of = |name: &str| one(name, programs, |row| row["program"] == name);
    let number = |row: &Value, field: &str| row[field].as_u64().unwrap();
    // Two processes, of which one was the shell; libraries are read besides.
    let cat = of("cat");
    agree.exact("threads of cat", number(cat, "threads"), 2);
    let bytes = number(cat, "read_bytes").max(number(cat, "written_bytes"));
    agree.between("bytes of cat", bytes, 3 * MIB..=3 * MIB + 256 * 1024);
    let dd = of("dd");
    agree.exact("threads of dd", number(dd, "threads"), 1);
    agree.between("written by dd", number(dd, "written_bytes"), MIB..=MIB + 4096);
    // Reads and writes, and what its loader looks for: where, and how often in vain, is the machine's.
    agree.between("operations of dd", number(dd, "ops"), 32..=1_000);
    agree.between("written by sh", number(of("sh"), "written_bytes"), 0..=0);
    agree_with_totals(&job.json, &mut agree);
    agree.end();
}

/// More threads than there are cells: what is driven out was read before, and the totals stay what they are.
#[test]
fn many_short_threads_leave_the_totals_exact() {
    let disk = Tmpfs::mount(64 * MIB).unwrap();
    let file = disk.path().join("log");
    OpenOptions::new().create(true).truncate(true).write(true).open(&file).unwrap();
    let file = file.to_str().unwrap();
    let script = format!("i=0; while [ $i -lt 9000 ]; do (echo $i >>{file}); i=$((i+1)); done");
    let job = Traced::run(&["--io"], &["sh", "-c", &script]);
    assert!(job.output.status.success(), "{:?}", job.output);
    let mut agree = Agreement::new();
    let shell = one("sh", rows(&job.json, "io_programs"), |row| row["program"] == "sh");
    // A number that came again is told of one thread.
    agree.between("threads", shell["threads"].as_u64().unwrap(), 8_900..=9_001);
    agree.exact(
        "written",
        shell["written_bytes"].as_u64().unwrap(),
        fs::metadata(file).unwrap().len(),
    );
    agree.between("rows", rows(&job.json, "io_threads").len() as u64, 64..=128);
    agree.end();
}

/// Paths and names of threads are in the record and what is made of it, harmless to look at.
#[test]
fn names_of_slow_operations_and_threads_are_harmless() {
    let (disk, slow) = (Tmpfs::mount(64 * MIB).unwrap(), late());
    let own = folder(disk.path(), "own");
    let folder = tempfile::tempdir().unwrap();
    let [records, page] =
        ["records", "page"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let program = program().unwrap();
    let jobtrace = |arguments: &[&str]| {
        let output = Command::new(&program).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let run = ["run", "--io", "--name", "slow", "--save", &records, "--"];
    let [_, summary] = jobtrace(&[&run[..], &[SLOW_OPS, &slow.file(FILE), &own]].concat());
    let of_it = ["report", "slow", "--from", &records];
    let [report, _] = jobtrace(&of_it);
    let [json, _] = jobtrace(&[&of_it[..], &["--json"]].concat());
    jobtrace(&[&of_it[..], &["--html", &page]].concat());
    let html = fs::read_to_string(&page).unwrap();
    for text in [&summary, &report, &html, &json] {
        assert!(text.contains("open ") && text.contains("fsync "), "nothing slow in {text}");
        for hostile in HOSTILE {
            assert!(!text.contains(hostile), "{hostile:?} in {text}");
        }
    }
    assert!(
        summary.contains("Slowest operations") && !summary.contains("I/O by thread"),
        "{summary}"
    );
    for title in ["Slowest operations", "I/O by program", "I/O by thread"] {
        assert!(report.contains(title) && html.contains(title), "{title} in {report}");
    }
    assert!(MARKUP.iter().all(|markup| !html.contains(markup)), "{html}");
    assert!(html.contains("script") && report.contains("ENOENT"), "told of, as text: {report}");
}

/// The kernel's programs know no time namespace, and who counts may be in one.
#[test]
fn in_a_time_namespace_operations_begin_when_they_began() {
    let mut start = Command::new("unshare");
    start.args(["--time", "--fork", "--monotonic", "100000"]).arg(program().unwrap());
    let from = wall_ns();
    let job = Traced::run_by(start, &["--io"], &["sh", "-c", "sleep 0.3; cat /etc/passwd"]);
    let while_it_ran = from - CLOCKS_NS..=wall_ns();
    let slowest = rows(&job.json, "io_slowest");
    assert!(!slowest.is_empty(), "{:?}", job.json["notes"]);
    for row in slowest {
        assert!(while_it_ran.contains(&row["begin"].as_u64().unwrap()), "{row}");
    }
}
