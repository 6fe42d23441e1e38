//! Paths of a job whose processes have mounts of their own.

use std::{
    ffi::{CStr, CString},
    io::{self, BufRead, BufReader, Write},
    os::unix::{ffi::OsStringExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Stdio,
    ptr::null,
    time::{Duration, Instant},
};

use jobtrace_tests::{
    account::Report,
    agent::Agent,
    agree::Agreement,
    operations,
    rig::{self, shaped::Directories, wait_for},
};
use serde_json::Value;

use super::{Desk, FILE_OPS, OWNER, PATIENCE, Running, Shaped, begun, end, quiet};

/// A process with a mount namespace of its own, in which `top` is a tmpfs with another one at `own` and so many more
/// mounts with long names, and which there runs `script`.
fn mounted(job: &Directories, top: &Path, more: usize, script: &str) -> Running {
    let text = |path: PathBuf| CString::new(path.into_os_string().into_vec()).unwrap();
    let (own, all) = (text(top.join("own")), text(top.to_owned()));
    let folders: Vec<_> =
        (0..more).map(|number| text(top.join(format!("{number:0200}")))).collect();
    let mount = |from: &CStr, at: &CStr, flags| {
        // SAFETY: all strings end, and live as long as the call.
        match unsafe { libc::mount(from.as_ptr(), at.as_ptr(), c"tmpfs".as_ptr(), flags, null()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    let make = |at: &CStr| {
        // SAFETY: the string ends.
        unsafe { libc::mkdir(at.as_ptr(), 0o755) };
    };
    let enter = move || {
        // SAFETY: of this process alone.
        if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
            return Err(io::Error::last_os_error());
        }
        mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE)?;
        mount(c"jobtrace", &all, 0)?;
        make(&own);
        mount(c"jobtrace", &own, 0)?;
        folders.iter().try_for_each(|folder| {
            make(folder);
            mount(folder, folder, libc::MS_BIND)
        })
    };
    let mut command = job.command("sh");
    command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    // SAFETY: the child makes system calls, and its strings were made before the fork.
    unsafe { command.pre_exec(enter) };
    Running(command.spawn().unwrap())
}

/// A job of which one process is outside, and the others have mounts of their own: more than anybody could follow.
#[test]
fn a_job_with_a_host_of_mounts_is_told_by_its_own_and_costs_the_agent_little() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let folder = rig::folder("mounts").unwrap();
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let desk = Desk::of(&agent);
    let job = shaped.job(OWNER, 9_806, "step_0");
    let _outside = Running(job.command("sleep").arg("600").spawn().unwrap());
    let own = folder.path().join("own");
    let own = own.to_str().unwrap();
    let script =
        format!("sleep 600 & echo mounted; read go; {FILE_OPS} {own} 1; read end; kill $!");
    let mut inside = mounted(&job, folder.path(), 5_000, &script);
    let mut tell = inside.0.stdin.take().unwrap();
    let mut told = BufReader::new(inside.0.stdout.take().unwrap()).lines();
    assert_eq!(told.next().unwrap().unwrap(), "mounted");
    agent.settle().unwrap();
    let before = agent.anonymous_bytes();
    let asked = desk.ask(0, &["9806", "--for", "1h", "--json"]);
    begun(&agent, 1);
    writeln!(tell, "go").unwrap();
    let report: Report = serde_json::from_str(&told.next().unwrap().unwrap()).unwrap();
    // Two more looks at them.
    let begin = Instant::now();
    let mut most = 0;
    let has_looked = || {
        most = agent.anonymous_bytes().max(most);
        (begin.elapsed() > Duration::from_secs(11)).then_some(())
    };
    wait_for("two looks", PATIENCE, has_looked).unwrap();
    assert!(most < before + (64 << 20), "{before} bytes before, {most} later");
    let pid = rustix::process::Pid::from_child(&asked.0);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let [status, json, stderr] = end(asked);
    assert_eq!((&*status, &*stderr), ("130", ""), "{}", agent.log());
    let counted: Value = serde_json::from_str(&json).unwrap();
    let mut agree = Agreement::new();
    operations::agree(&mut agree, &counted, ["tmpfs", own], &report);
    agree.end();
    let notes = counted["notes"].to_string();
    for note in ["there are more mounts than can be followed", "have different mounts"] {
        assert!(notes.contains(note), "{notes}");
    }
    writeln!(tell, "end").unwrap();
    inside.0.wait().unwrap();
    agent.stop().unwrap();
}
