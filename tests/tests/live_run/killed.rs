//! jobtrace killed outright, and commands that outlive or leave it.
//!
//! After a SIGKILL nothing of the tracing is in the kernel and the command goes on. What remains is
//! the command's cgroup: the next run removes it once no process is in it.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Stdio},
};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::program::{Ended, cgroups_of, end_with_leftovers, jobtrace, line_of, run, wait_for};

/// bpf(2)'s commands that look an object up by its id, with the line of /proc/PID/fdinfo that names it.
const KINDS: [(&str, libc::c_long); 3] = [("prog_id:", 13), ("map_id:", 14), ("link_id:", 30)];

/// Ids of the BPF objects that `pid` holds: command and id.
fn bpf_objects(pid: u32) -> BTreeSet<(libc::c_long, u32)> {
    let files = fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap().flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let mut found = BTreeSet::new();
    for text in texts {
        for line in text.lines() {
            let object = KINDS.iter().find_map(|(key, command)| {
                Some((*command, line.strip_prefix(key)?.trim().parse().ok()?))
            });
            found.extend(object);
        }
    }
    found
}

/// Whether the kernel still has it.
fn is_there(&(command, id): &(libc::c_long, u32)) -> bool {
    let mut attributes = [0_u32; 16];
    attributes[0] = id;
    let size = size_of_val(&attributes);
    // SAFETY: the kernel reads `size` bytes; a descriptor it returns is closed at once.
    unsafe {
        let fd = libc::syscall(libc::SYS_bpf, command, attributes.as_mut_ptr(), size);
        fd >= 0 && libc::close(fd as i32) == 0
    }
}

/// A process of the command that the test ends, whatever happens.
pub struct Outliving(Pid);

impl Outliving {
    pub fn parse(line: &str) -> Self {
        Self(Pid::from_raw(line.trim().parse().unwrap()).unwrap())
    }

    fn is_alive(&self) -> bool {
        test_kill_process(self.0).is_ok()
    }

    /// Ends it and waits until its cgroups are empty.
    pub fn end(&self, cgroups: &[PathBuf]) {
        let _ = kill_process(self.0, Signal::KILL);
        wait_for("empty cgroups", || {
            let procs = cgroups.iter().map(|path| fs::read_to_string(path.join("cgroup.procs")));
            procs.flatten().all(|text| text.is_empty()).then_some(())
        });
    }
}

impl Drop for Outliving {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// Starts jobtrace over a long sleep, kills it outright, and gives what it leaves behind.
fn kill_outright() -> (Outliving, Vec<PathBuf>) {
    let mut jobtrace = jobtrace();
    jobtrace.args(["--", "sh", "-c", "echo $$; exec sleep 100"]).stderr(Stdio::null());
    let mut child: Child = jobtrace.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let command = Outliving::parse(&line);
    let objects = bpf_objects(child.id());
    assert!(objects.len() > 10, "{objects:?}");
    assert!(objects.iter().all(is_there));
    child.kill().unwrap();
    child.wait().unwrap();
    // The kernel lets go of them a moment later.
    wait_for("the end of all BPF objects", || (!objects.iter().any(is_there)).then_some(()));
    let cgroups = cgroups_of(child.id());
    assert!(!cgroups.is_empty());
    (command, cgroups)
}

#[test]
fn killed_outright_nothing_traces_on_and_the_command_lives() {
    let (command, cgroups) = kill_outright();
    assert!(command.is_alive());
    let pinned = fs::read_dir("/sys/fs/bpf").into_iter().flatten().flatten();
    let pinned: Vec<_> = pinned.map(|entry| entry.file_name()).collect();
    assert!(!pinned.iter().any(|name| name.to_string_lossy().contains("jobtrace")), "{pinned:?}");
    command.end(&cgroups);
    for directory in cgroups {
        let _ = fs::remove_dir(&directory);
        assert!(!directory.exists());
    }
}

#[test]
fn the_next_run_removes_what_a_killed_one_left() {
    let (command, cgroups) = kill_outright();
    run(["-q", "--", "true"]);
    assert!(command.is_alive() && cgroups.iter().all(|path| path.exists()), "in use: left alone");
    // What the command made in there goes too.
    fs::create_dir(cgroups[0].join("made")).unwrap();
    command.end(&cgroups);
    run(["-q", "--", "true"]);
    assert!(cgroups.iter().all(|path| !path.exists()), "{cgroups:?}");
}

#[test]
fn processes_that_outlive_the_command_are_named_and_left_alone() {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("pid");
    let script = "sleep 100 >&- 2>&- & echo $! > \"$0\"; exit 8";
    let mut jobtrace = jobtrace();
    jobtrace.args(["--", "sh", "-c", script]).arg(&file);
    let ended: Ended = end_with_leftovers(jobtrace.spawn().unwrap());
    let command = Outliving::parse(&line_of(&file));
    let cgroups = cgroups_of(ended.pid);
    assert_eq!(ended.status, 8);
    let pid = command.0.as_raw_nonzero().to_string();
    let told = ended.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("is still running after the command ended"), "{told}");
    assert!(told.contains(&pid), "{pid}: {told}");
    assert!(command.is_alive() && !cgroups.is_empty());
    command.end(&cgroups);
    run(["-q", "--", "true"]);
    assert!(cgroups.iter().all(|path| !path.exists()), "{cgroups:?}");
}
