//! `jobtrace software`, and what a report says of the software that a job ran, on heads and records on the disk.

use std::{fs, path::Path};

use jobtrace::{
    census::{Namer, Options},
    model::{
        info::JobInfo,
        job::Job,
        point::Origin,
        seen::{Consent, Seen, SeenLibrary, SeenPackage, SeenProgram},
        software::Software,
        tables::fact,
    },
    record::{Record, head::Head, store::Store},
};
use serde_json::Value;

use super::{
    lists::{BEGIN, DAY, HOUR, job, list, write},
    program::{end, jobtrace},
};

/// Jobs that ran this and that, and one that nobody watched.
fn filled() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let ran = |id: u64, user: &str, packages: &str| {
        let head = job(dir.path(), id, user, "n1", BEGIN + id * HOUR, 2);
        let head = Head {
            software: Some("names".into()),
            packages: Some(packages.into()),
            libraries: Some("CUDA 12.4.127, OpenMPI 4.1.5, +7".into()),
            programs: Some("bash, python 3.11".into()),
            stacks: Some("conda/pangeo".into()),
            python: Some("3.11".into()),
            gpu_library: Some(1),
            ..head
        };
        write(dir.path(), &head);
        head
    };
    ran(1, "ada", "numpy 2.4.6, torch 2.9.0");
    ran(2, "bob", "numpy 1.26.4, +2");
    let idle = ran(3, "ada", "numpy 2.4.6, torch 2.9.0");
    write(dir.path(), &Head { gpu_held_ns: Some(2 * HOUR), gpu_busy_ns: Some(0), ..idle });
    job(dir.path(), 4, "ada", "n1", BEGIN + 9 * DAY, 1);
    dir
}

#[test]
fn what_jobs_ran_as_a_table_csv_and_json() {
    let dir = filled();
    let ended = list("software", dir.path(), &[]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("PACKAGE"), "{}", ended.stdout);
    assert!(lines[1].starts_with("numpy") && lines[2].starts_with("torch"), "{}", ended.stdout);
    assert!(ended.stdout.contains("unknown: 1 of 4 jobs (25 %)"), "{}", ended.stdout);
    let csv = list("software", dir.path(), &["--by", "library", "--csv"]);
    let keys: Vec<_> = csv.stdout.lines().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(keys, ["name", "CUDA", "OpenMPI"]);
    let json = list("software", dir.path(), &["--json", "--user", "ada"]);
    let rows: Vec<Value> =
        json.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[0]["name"], &rows[0]["jobs"]), (&"numpy".into(), &2.into()));
    assert_eq!((&rows[1]["gpu_idle_jobs"], &rows[1]["gpu_not_held_jobs"]), (&1.into(), &1.into()));
    assert_eq!(rows[1]["gpu_nodes_cpu_only_jobs"], 1, "the same node has GPUs");
    assert_eq!(rows[1]["versions"][0]["version"], "2.9.0");
    for (by, name) in [("program", "bash"), ("stack", "conda/pangeo"), ("python", "3.11")] {
        let ended = list("software", dir.path(), &["--by", by, "--json", "-n", "1"]);
        let row: Value = serde_json::from_str(ended.stdout.trim()).unwrap();
        assert_eq!(row["name"], name);
    }
}

#[test]
fn what_is_installed_and_nobody_loaded() {
    let dir = filled();
    let file = dir.path().join("installed.txt");
    fs::write(&file, "numpy==2.4.6\nscipy==1.11\n").unwrap();
    let ended = list("software", dir.path(), &["--installed", file.to_str().unwrap(), "--json"]);
    assert_eq!(ended.stdout, "{\"name\":\"scipy\",\"version\":\"1.11\"}\n");
    let text = list("software", dir.path(), &["--installed", file.to_str().unwrap()]).stdout;
    assert!(text.contains("1 of 2 that are installed were not loaded by 3 jobs"), "{text}");
    assert!(text.contains("1 job of these loaded things without a name"), "{text}");
    assert!(text.contains("unknown: 1 of 4 jobs"), "{text}");
    let missing = list("software", dir.path(), &["--installed", "/nowhere"]);
    assert_eq!(missing.status, 2);
    assert!(missing.stderr.contains("cannot read /nowhere"), "{}", missing.stderr);
}

#[test]
fn where_nobody_watched_it_says_how_to() {
    let dir = tempfile::tempdir().unwrap();
    job(dir.path(), 1, "ada", "n1", BEGIN, 1);
    let ended = list("software", dir.path(), &[]);
    assert!(ended.stderr.contains("`jobtrace run --software`"), "{}", ended.stderr);
    assert!(ended.stdout.contains("unknown: 1 of 1 job (100 %)"), "{}", ended.stdout);
}

/// What a job of ada's was seen to run, with secrets in each path that is hers.
fn seen() -> Seen {
    let own = "/home/ada/secret-project";
    let program = |path: String| SeenProgram { path, executions: 2 };
    let library = |path: String| SeenLibrary { path, by: format!("{own}/.venv/bin/python3.12") };
    let package = |name: &str| SeenPackage {
        site: format!("{own}/.venv/lib/python3.12/site-packages"),
        site_inode: None,
        name: name.into(),
        interpreter: format!("{own}/.venv/bin/python3.12"),
    };
    Seen {
        programs: vec![
            program("/usr/bin/bash".into()),
            program(format!("{own}/.venv/bin/python3.12")),
            program(format!("{own}/secret-solver")),
            program("/scratch/ada/secret.sh".into()),
            program("/apps/gromacs/2024.1/bin/gmx".into()),
        ],
        libraries: vec![
            library(format!("{own}/libsecret.so.1")),
            library(format!("{own}/.venv/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so")),
            library("/usr/local/cuda-12.4/lib64/libcudart.so.12.4.127".into()),
        ],
        packages: vec![package("torch"), package("secret_module"), package("secret_file.py")],
        python_processes_most: Some(4),
        since_begin: true,
        ..Seen::default()
    }
}

fn named(seen: Seen) -> Software {
    let namer = Namer::new(Options::default()).unwrap();
    namer.tell(7, seen);
    assert!(namer.settle(std::time::Duration::from_secs(60)));
    namer.take().remove(&7).unwrap()
}

/// A folder with the record of a job that ran that.
fn saved(software: Software) -> (tempfile::TempDir, Record) {
    let dir = tempfile::tempdir().unwrap();
    let origin = Origin { cluster: String::new(), host: "n1".into() };
    let [job, manager, user] = ["4711", "slurm", "ada"].map(str::to_owned);
    let of = Job { job, manager, user, ..Job::default() };
    let info = JobInfo { uid: 1000, user: "ada".into(), ..JobInfo::default() };
    let mut record = Record::new(&origin, of, info, BEGIN);
    record.facts.set(const { fact("start") }, BEGIN);
    record.add(HOUR, &[], &[]);
    record.facts.set(const { fact("end") }, BEGIN + HOUR);
    record.totals.software = Some(software);
    Store::open(dir.path(), "n1").unwrap().save(&record).unwrap();
    (dir, record)
}

fn report(dir: &Path, options: &[&str]) -> String {
    let ended = end(jobtrace().args(["report", "4711", "--from"]).arg(dir).args(options));
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    ended.stdout
}

#[test]
fn a_report_says_what_a_job_ran() {
    let (dir, _) = saved(named(seen()));
    let expected = "gmx 2024.1, Python 3.12, torch (CUDA 12.4), 2 other packages, up to 4 Python \
                    processes at once, a GPU's library, but no GPU held";
    let text = report(dir.path(), &[]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(expected), "{text}");
    let page = dir.path().join("page.html");
    report(dir.path(), &["--html", page.to_str().unwrap()]);
    let html = fs::read_to_string(page).unwrap();
    assert!(html.contains("Software") && html.contains("torch (CUDA 12.4)"), "{html}");
    let json: Value = serde_json::from_str(&report(dir.path(), &["--json"])).unwrap();
    assert_eq!(json["record"]["software"]["packages"][0]["name"], "torch");
}

/// What docs/PRIVACY.md promises, against all that is written of a job: its record, its head, its lines, its reports.
#[test]
fn nothing_of_a_users_own_is_written_and_each_key_is_explained() {
    use jobtrace::{
        lines::line::encode,
        model::software_point::{UserTag, point},
    };
    let software = named(seen());
    let (dir, record) = saved(software.clone());
    let mut written = jobtrace::record::document::document(&record).unwrap();
    let head = Head::from(&record);
    written += &head.line();
    let origin = Origin { cluster: "c1".into(), host: "n1".into() };
    for user in [UserTag::On, UserTag::Off, UserTag::Hashed("salt".into())] {
        let point = point(&origin, record.job(), &software, &user, 9);
        let mut line = Vec::new();
        encode(&point, &mut line);
        let line = String::from_utf8(line).unwrap();
        assert_eq!(line.contains("ada"), user == UserTag::On, "{line}");
        let read = influxdb_line_protocol::parse_lines(&line).map(|read| read.unwrap());
        assert_eq!(read.count(), 1, "{line}");
        written += &line;
    }
    for options in [&[][..], &["--json"]] {
        written += &report(dir.path(), options);
    }
    written += &list("software", dir.path(), &["--json"]).stdout;
    for secret in ["secret", "/home", "/scratch", ".venv", ".sh", "/usr", "/apps", "site-packages"]
    {
        assert!(!written.contains(secret), "{secret} is in {written}");
    }
    assert_eq!((software.other_programs, software.other_libraries), (2, 1));
    assert_eq!(software.unknown_packages, 2);
    let privacy = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/PRIVACY.md");
    let privacy = fs::read_to_string(privacy).unwrap();
    let json = serde_json::to_value(&software).unwrap();
    for key in json.as_object().unwrap().keys().chain([&"lost".into(), &"opted_out".into()]) {
        assert!(privacy.contains(&format!("`{key}`")), "docs/PRIVACY.md does not explain {key}");
    }
}

#[test]
fn who_asked_for_silence_is_told_as_that_alone() {
    let (dir, record) = saved(named(Seen { consent: Consent::Refused, ..seen() }));
    let software = serde_json::to_value(record.totals.software.as_ref().unwrap()).unwrap();
    let told: Vec<_> = software.as_object().unwrap().keys().collect();
    assert_eq!(told, ["gpu_library", "level", "opted_out", "since_begin"]);
    assert_eq!(software["gpu_library"], false);
    let text = list("software", dir.path(), &[]);
    assert!(text.stdout.contains("1 job: asked that nothing is told"), "{}", text.stdout);
    assert!(report(dir.path(), &[]).contains("not told, as the job asked"));
}
