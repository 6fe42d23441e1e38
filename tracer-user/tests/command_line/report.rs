//! `jobtrace report` on records that runs saved.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::program::{Ended, RECORDINGS, end, jobtrace, recording, replay};

/// A folder with a record of each recording.
pub fn saved() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in RECORDINGS {
        let ended =
            replay(&recording(name), &["--quiet".as_ref(), "--save".as_ref(), dir.path().as_ref()]);
        assert_eq!(ended.status, 0, "{}", ended.stderr);
    }
    dir
}

pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => files.extend(self::files(&entry)),
            false => files.push(entry),
        }
    }
    files.sort();
    files
}

fn report(dir: &Path, arguments: &[&str]) -> Ended {
    end(jobtrace().arg("report").args(arguments).arg("--from").arg(dir))
}

fn json(ended: &Ended) -> Value {
    assert_eq!(ended.stdout.lines().count(), 1, "{}", ended.stdout);
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn a_job_is_found_by_its_id_by_its_name_and_by_its_file() {
    let dir = saved();
    let by_id = report(dir.path(), &["6142-1795250571"]);
    assert_eq!((by_id.status, by_id.stderr.as_str()), (0, ""));
    assert!(by_id.stdout.starts_with("sh succeeded (exit status 0) after 428 ms\n"), "{by_id:?}");
    assert!(by_id.stdout.contains("run job 6142-1795250571 of root"), "{}", by_id.stdout);
    let by_name = report(dir.path(), &["sh"]);
    assert_eq!(by_name.status, 0);
    assert!(by_name.stdout.contains("was ended by SIGTERM"), "the last: {}", by_name.stdout);
    assert!(by_name.stderr.contains("sh ran 2 times: this is the last"), "{}", by_name.stderr);
    let file = files(dir.path())
        .into_iter()
        .find(|file| file.file_name().unwrap().to_str().unwrap().starts_with("run-6142-"));
    let by_file = end(jobtrace().arg("report").arg(file.unwrap()));
    assert_eq!(by_file.stdout, by_id.stdout);
    let before = end(jobtrace().args(["report", "--from"]).arg(dir.path()).arg("6142-1795250571"));
    assert_eq!(before.stdout, by_id.stdout, "--from takes one folder, and what follows is a job");
    let both = report(dir.path(), &["6142-1795250571", "6154-1795250572"]);
    assert_eq!(both.stdout.matches("\nUsed\n").count(), 2, "{}", both.stdout);
}

#[test]
fn what_json_wrote_can_be_reported_as_well_and_tells_the_same() {
    let dir = saved();
    let file = dir.path().join("run.json");
    let options = ["--quiet".as_ref(), "--json".as_ref(), file.as_os_str()];
    assert_eq!(replay(&recording("disk"), &options).status, 0);
    let of_json = end(jobtrace().args(["report", "--json"]).arg(&file));
    let of_saved = report(dir.path(), &["6142-1795250571", "--json"]);
    assert_eq!(of_json.stdout, of_saved.stdout);
    let (report, record) = (json(&of_json), fs::read_to_string(&file).unwrap());
    let record: Value = serde_json::from_str(&record).unwrap();
    assert_eq!(report["record"]["sched"], record["sched"]);
    assert_eq!(report["who"]["state"], "succeeded (exit status 0)");
    let on_cpu = report["time"].as_array().unwrap().iter().find(|bar| bar["name"] == "on CPU");
    let share = on_cpu.unwrap()["share"].as_f64().unwrap();
    let expected =
        record["sched"]["on_cpu_ns"].as_f64().unwrap() / record["elapsed_ns"].as_f64().unwrap();
    assert!((share - expected).abs() < 1e-9, "{share} {expected}");
}

#[test]
fn who_names_no_job_that_there_is_is_told_what_to_do() {
    let dir = saved();
    let none = report(dir.path(), &["4711"]);
    assert_eq!((none.status, none.stdout.as_str()), (2, ""));
    assert!(none.stderr.contains("no record of job 4711 in "), "{}", none.stderr);
    assert!(none.stderr.contains("--from names other folders"), "{}", none.stderr);
    let nowhere = report(&dir.path().join("nowhere"), &["4711"]);
    assert_eq!(nowhere.status, 2);
    assert!(nowhere.stderr.contains("jobtrace run --save DIR"), "{}", nowhere.stderr);
    let no_file = end(jobtrace().args(["report", "./x.json.gz"]));
    assert_eq!(no_file.status, 2);
    assert!(no_file.stderr.contains("cannot read ./x.json.gz"), "{}", no_file.stderr);
}

#[test]
fn a_damaged_record_is_named_and_one_that_is_not_a_record_refused() {
    let dir = saved();
    let files = files(dir.path());
    let heads = files.iter().find(|file| file.extension().unwrap() == "jsonl").unwrap();
    let torn = fs::read_to_string(heads).unwrap() + "{\"file\":\"run-1";
    fs::write(heads, torn).unwrap();
    let one = report(dir.path(), &["6142-1795250571"]);
    assert_eq!(one.status, 1, "{one:?}");
    assert!(one.stderr.contains("line 4 is damaged"), "{}", one.stderr);
    assert!(one.stdout.starts_with("sh succeeded"), "{}", one.stdout);
    let record = files.iter().find(|file| file.to_str().unwrap().contains("run-6142-")).unwrap();
    fs::write(record, &fs::read(record).unwrap()[..100]).unwrap();
    let cut = report(dir.path(), &["6142-1795250571"]);
    assert_eq!((cut.status, cut.stdout.as_str()), (2, ""));
    assert!(cut.stderr.contains("the record is damaged"), "{}", cut.stderr);
}

#[test]
fn nobody_who_reads_is_no_failure() {
    let dir = saved();
    let mut command = jobtrace();
    command.args(["report", "sh", "--from"]).arg(dir.path());
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn();
    drop(child.as_mut().unwrap().stdout.take());
    assert_eq!(child.unwrap().wait().unwrap().code(), Some(0));
}

#[test]
fn a_page_is_written_to_a_file_and_for_one_job_only() {
    let dir = saved();
    let page = dir.path().join("x.html");
    let html = ["--html", page.to_str().unwrap()];
    let ended = report(dir.path(), &[&["6142-1795250571"][..], &html].concat());
    assert_eq!((ended.status, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", ""));
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>\n"), "{text}");
    assert!(text.contains("<h1>sh <span class=\"good\">succeeded (exit status 0)</span></h1>"));
    let both = report(dir.path(), &[&["6142-1795250571", "sh"][..], &html].concat());
    assert_eq!(both.status, 2);
    assert!(both.stderr.contains("name one job"), "{}", both.stderr);
    let nowhere = report(dir.path(), &["6142-1795250571", "--html", "/nowhere/x.html"]);
    assert_eq!(nowhere.status, 2);
    assert!(nowhere.stderr.contains("/nowhere/x.html"), "{}", nowhere.stderr);
}

#[test]
fn ten_lines_say_what_it_used_and_where_the_rest_is() {
    let dir = saved();
    let ended = report(dir.path(), &["6142-1795250571", "--short", "--no-sched"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert!((3..=10).contains(&lines.len()), "{}", ended.stdout);
    assert_eq!(lines[0], "jobtrace: sh succeeded (exit status 0) after 428 ms");
    let all =
        format!("  all of it: jobtrace report 6142-1795250571 --from {}", dir.path().display());
    assert_eq!(lines[lines.len() - 1], all);
    // The command is to be copied: as a shell takes it, however long.
    let odd = dir.path().join(format!("it's a folder; touch {}", "x".repeat(60)));
    fs::create_dir(&odd).unwrap();
    let owner = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    for path in owner.filter(|path| *path != odd) {
        fs::rename(&path, odd.join(path.file_name().unwrap())).unwrap();
    }
    let ended = report(&odd, &["6142-1795250571", "--short", "--no-sched"]);
    let quoted = odd.display().to_string().replace('\'', r"'\''");
    let all = format!("  all of it: jobtrace report 6142-1795250571 --from '{quoted}'");
    assert_eq!(ended.stdout.lines().last(), Some(&*all));
    let both = report(dir.path(), &["6142-1795250571", "--short", "--json"]);
    assert_eq!(both.status, 2);
    assert!(both.stderr.contains("cannot be used with"), "{}", both.stderr);
}

#[test]
fn an_agent_that_does_not_answer_is_named_and_what_is_saved_reported() {
    let dir = saved();
    let ended = report(dir.path(), &["6142-1795250571", "--socket", "/nowhere/query.sock"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    let said = "what the job does now is not known: cannot ask the agent at /nowhere/query.sock";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("sh succeeded"), "{}", ended.stdout);
}
