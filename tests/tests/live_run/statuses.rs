//! Exit statuses, and streams that pass through untouched.

use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
    thread,
};

use crate::program::{end, jobtrace, program, run};

#[test]
fn the_commands_status_is_jobtraces() {
    for (script, status) in
        [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -KILL $$", 137), ("kill $$", 143)]
    {
        let ended = run(["--", "sh", "-c", script]);
        assert_eq!(ended.status, status, "{script}: {}", ended.stderr);
        assert!(ended.stderr.contains("Where the time went"), "{}", ended.stderr);
    }
}

#[test]
fn a_command_that_cannot_start_leaves_nothing() {
    let tmp = tempfile::tempdir().unwrap();
    let plain = tmp.path().join("plain");
    fs::write(&plain, "not a program").unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).unwrap();
    let script = tmp.path().join("script");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let (json, out) = (tmp.path().join("json"), tmp.path().join("out"));
    let kept = tmp.path().join("kept");
    fs::write(&kept, "kept").unwrap();
    for (command, status, why) in [
        ("no-such-command-anywhere", 127, "command not found"),
        ("/no/such/file", 127, "command not found"),
        ("", 127, "the command to run is empty"),
        (script.to_str().unwrap(), 127, "the interpreter or loader that it names is not there"),
        (plain.to_str().unwrap(), 126, "cannot be executed"),
        (tmp.path().to_str().unwrap(), 126, "cannot be executed"),
    ] {
        let mut jobtrace = jobtrace();
        jobtrace.arg("--json").arg(&json).arg("--out").arg(&out).args(["--", command]);
        let ended = end(jobtrace.spawn().unwrap());
        assert_eq!(ended.status, status, "{command}: {}", ended.stderr);
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "no summary: {}", ended.stderr);
        assert!(!json.exists(), "an empty file passes for numbers");
        assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
        for option in ["--json", "--record"] {
            let ended = run([option, kept.to_str().unwrap(), "--", command]);
            assert_eq!(ended.status, status, "{option} {command}: {}", ended.stderr);
            assert_eq!(fs::read_to_string(&kept).unwrap(), "kept", "{option} {command}");
        }
    }
}

#[test]
fn streams_pass_through_byte_by_byte() {
    let bytes: Vec<u8> = (0..300_000_u32).map(|n| (n * 7 + n / 256) as u8).collect();
    let mut jobtrace = jobtrace();
    let mut child = jobtrace.args(["--quiet", "--", "cat"]).stdin(Stdio::piped()).spawn().unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), bytes.clone());
    let writer = thread::spawn(move || stdin.write_all(&input).unwrap());
    let ended = end(child);
    writer.join().unwrap();
    assert!(ended.stdout == bytes, "{} bytes of {}", ended.stdout.len(), bytes.len());
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
}

#[test]
fn the_commands_standard_error_comes_before_the_summary() {
    let ended = run(["--", "sh", "-c", "echo out; echo err >&2"]);
    assert_eq!(ended.stdout, b"out\n");
    assert!(ended.stderr.starts_with("err\n"), "{}", ended.stderr);
}

#[test]
fn environment_and_directory_are_the_callers() {
    let tmp = tempfile::tempdir().unwrap();
    let mut jobtrace = jobtrace();
    jobtrace.args(["-q", "--", "sh", "-c", "pwd; echo $JOB_SETS"]);
    let ended = end(jobtrace.env("JOB_SETS", "7").current_dir(tmp.path()).spawn().unwrap());
    let expected = format!("{}\n7\n", tmp.path().canonicalize().unwrap().display());
    assert_eq!(String::from_utf8(ended.stdout).unwrap(), expected);
}

#[test]
fn closed_streams_are_no_trouble() {
    for (redirection, status) in [(">&-", 4), ("2>&-", 4), ("<&-", 4), ("<&- >&- 2>&-", 4)] {
        let script = format!("exec \"$0\" run -- sh -c 'exit 4' {redirection}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).arg(program()).env("RUST_BACKTRACE", "0");
        let ended = end(shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        assert_eq!(ended.status, status, "{redirection}: {}", ended.stderr);
    }
}

#[test]
fn a_summary_that_nobody_reads_is_no_trouble() {
    // The first has a summary only, the others a trouble to tell besides.
    for (options, script, status) in [
        (&["--interval", "1s"][..], "exit 5", 5),
        (&["--json", "/dev/full"], "exit 0", 1),
        (&["--json", "/dev/full"], "exit 5", 5),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut jobtrace = jobtrace();
        jobtrace.args(options).args(["--", "sh", "-c", script]).stderr(writer);
        assert_eq!(end(jobtrace.spawn().unwrap()).status, status, "{options:?} {script}");
    }
}
