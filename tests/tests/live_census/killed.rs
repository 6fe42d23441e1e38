//! A Python process killed at any moment, against strace's list of what it opened, read and mapped until then.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::Stdio,
    thread::sleep,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use jobtrace::probes::Room;
use jobtrace_tests::rig::{PATIENCE, wait_for};

use crate::{
    real::{Environment, environment},
    watch::{Watch, libraries, modules},
};

const IMPORTS: &str = "import numpy, pandas, requests, sklearn.linear_model";
const TIMES: u32 = 6;

/// Files that a process surely had, and those that it may have had: what it was about to do when it was killed may have
/// been seen or not.
#[derive(Debug, Default)]
struct Listed {
    libraries: [BTreeSet<String>; 2],
    modules: [BTreeSet<String>; 2],
}

impl Listed {
    /// Of strace's `log`, as far as it is of `site` and not of the program at `own`.
    fn of(log: &str, site: &Path, own: &Path) -> Self {
        let mut listed = Self::default();
        // The kernel maps it, unasked.
        for all in &mut listed.libraries {
            all.insert(loader());
        }
        for line in log.lines().filter(|line| !line.contains(") = -1 ")) {
            let is_done = line.contains(") = ");
            // `openat(AT_FDCWD</>, "/a/b.py", O_RDONLY) = 3</a/b.py>`, `read(3</a/b.py>, …`
            let (opened, used) = (line.split('"').nth(1), within(line));
            let is_open = line.contains(" openat(");
            let path = if is_open { opened } else { used }.unwrap_or_default();
            let is_library = path.contains(".so") && Path::new(path) != own;
            let is_mapped = line.contains(" mmap(") && line.contains("PROT_EXEC");
            if is_library && (is_open || is_mapped) {
                listed.libraries[1].insert(path.to_owned());
                if is_mapped && is_done {
                    listed.libraries[0].insert(path.to_owned());
                }
            }
            let Some(name) = module(path, site) else { continue };
            listed.modules[1].insert(name.clone());
            if line.contains(" read(") && is_done {
                listed.modules[0].insert(name);
            }
        }
        listed
    }
}

/// The library that loads the others, as this process has it.
fn loader() -> String {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut paths = maps.lines().filter_map(|line| Some(&line[line.find('/')?..]));
    paths.find(|path| path.contains("/ld-")).expect("a loader").to_owned()
}

/// The path of a line's descriptor.
fn within(line: &str) -> Option<&str> {
    let begin = line.find("</")? + 1;
    let length = line[begin..].find('>')?;
    Some(&line[begin..begin + length])
}

/// The name in `site` that the file at `path` is of, if it is a module's.
fn module(path: &str, site: &Path) -> Option<String> {
    let below = Path::new(path).strip_prefix(site).ok()?.to_str()?;
    let is_module = [".py", ".pyc", ".so"].iter().any(|end| below.ends_with(end));
    let mut parts = below.split('/');
    let first = parts.next().filter(|_| is_module)?;
    let name = if first == "__pycache__" { parts.next()? } else { first };
    Some(name.to_owned())
}

/// Kills it after `moment`; whether that was before its end.
fn one(environment: &Environment, moment: Duration) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let [python, rest @ ..] = environment.command(IMPORTS);
    let words = ["strace", "-f", "-y", "-s", "0", "-e", "trace=openat,read,mmap", "-o"];
    let words = [&words[..], &[log.to_str().unwrap(), "--", python], &rest[..]].concat();
    let watch = Watch::begin("census-killed", Room::JOB);
    let mut strace = watch.job.command(&words).stderr(Stdio::piped()).spawn().unwrap();
    let children = format!("/proc/{0}/task/{0}/children", strace.id());
    let python = wait_for("the interpreter", PATIENCE, || {
        let child = fs::read_to_string(&children).ok()?.split(' ').next()?.parse().ok()?;
        let program = fs::read_link(format!("/proc/{child}/exe")).ok()?;
        (program == environment.program).then_some(child)
    })
    .unwrap();
    let begun = Instant::now();
    let mut status = None;
    while begun.elapsed() < moment && status.is_none() {
        status = strace.try_wait().unwrap();
        sleep(Duration::from_millis(1));
    }
    if status.is_none() {
        // SAFETY: strace has not reaped it: it has not ended itself.
        unsafe { libc::kill(python, libc::SIGKILL) };
    }
    let output = strace.wait_with_output().unwrap();
    let seen = watch.end();
    let text = fs::read_to_string(&log).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let listed = Listed::of(&text, &environment.site, &environment.program);
    let told = [
        (libraries(&seen, &environment.program), &listed.libraries),
        (modules(&seen, &environment.site, &environment.program), &listed.modules),
    ];
    assert_eq!(seen.lost, 0);
    for (told, [surely, perhaps]) in &told {
        let (missing, more): (Vec<_>, Vec<_>) =
            (surely.difference(told).collect(), told.difference(perhaps).collect());
        let said = format!("after {moment:?} missing {missing:?}, too many {more:?}");
        assert!(missing.is_empty() && more.is_empty(), "{said}");
    }
    eprintln!(
        "killed: {}, after {moment:?}: {} libraries, {} names of modules, of {} and {}",
        status.is_none(),
        told[0].0.len(),
        told[1].0.len(),
        listed.libraries[0].len(),
        listed.modules[0].len()
    );
    status.is_none()
}

#[test]
fn what_a_process_had_until_it_was_killed_is_told() {
    let environment = environment();
    let mut killed = 0;
    let mut most = Duration::from_secs(3);
    for _ in 0..TIMES {
        let random = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_micros();
        let moment = most * (random % 1000) / 1000;
        match one(environment, moment) {
            true => killed += 1,
            // It was done by then.
            false => most = most.min(moment),
        }
    }
    assert!(killed > 0, "it ended by itself {TIMES} times");
}
