//! Options, the file, secrets: where lines go and as whom.

use std::{fs, os::unix::fs::PermissionsExt};

use super::{
    server::{Act, Server},
    spool::{Spool, end, names, os, push},
};

#[test]
fn each_interface_is_asked_in_its_way() {
    let secrets = tempfile::tempdir().unwrap();
    let file = secrets.path().join("secret");
    fs::write(&file, "s3cret\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let file = os(&file);
    for (options, target, authorization) in [
        (vec!["--token-file", file], "/write?db=jobtrace&precision=ns", "Bearer s3cret"),
        (
            vec![
                "--database",
                "a b",
                "--retention-policy",
                "year",
                "--user",
                "ada",
                "--password-file",
                file,
            ],
            "/write?db=a%20b&rp=year&precision=ns",
            "Basic YWRhOnMzY3JldA==",
        ),
        (
            vec!["--org", "hpc", "--bucket", "jobs/x", "--token-file", file],
            "/api/v2/write?org=hpc&bucket=jobs%2Fx&precision=ns",
            "Token s3cret",
        ),
        (
            vec!["--api", "v3", "--token-file", file],
            "/api/v3/write_lp?db=jobtrace&precision=nanosecond",
            "Bearer s3cret",
        ),
        (vec!["--api", "victoria", "--token-file", file], "/write?precision=ns", "Bearer s3cret"),
    ] {
        let (spool, server) = (Spool::new(1, 1), Server::start(|_, _| Act::Take));
        let ended = spool.push(&server.url(), &options);
        assert_eq!(ended.status, 0, "{options:?}: {}", ended.words);
        assert!(!ended.words.contains("s3cret"), "{}", ended.words);
        let request = &server.requests()[0];
        assert_eq!(request.head, format!("POST {target} HTTP/1.1"));
        assert_eq!(request.headers["authorization"], authorization);
    }
}

#[test]
fn secrets_come_from_the_environment_too() {
    for (variable, options, authorization) in [
        ("JOBTRACE_PUSH_TOKEN", &["--org", "o", "--bucket", "b"][..], "Token s3cret"),
        ("JOBTRACE_PUSH_PASSWORD", &["--user", "ada"], "Basic YWRhOnMzY3JldA=="),
    ] {
        let (spool, server) = (Spool::new(1, 1), Server::start(|_, _| Act::Take));
        let mut command = spool.command(&server.url());
        let ended = end(command.args(options).env(variable, "s3cret"));
        assert_eq!(ended.status, 0, "{}", ended.words);
        assert_eq!(server.requests()[0].headers["authorization"], authorization);
    }
}

#[test]
fn what_is_wrong_is_told_before_anything_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::new(1, 1);
    let at = |options: &[&str]| match options.contains(&"--spool") {
        true => end(push().args(options)),
        false => end(push().arg("--spool").arg(spool.path()).args(options)),
    };
    for (options, words) in [
        (&["--config", "/nonexistent"][..], "cannot read /nonexistent"),
        (&["--url", "influx:8086"], "https://influx.example.org:8086"),
        (&["--url", "http://ada:s3cret@h"], "--password-file"),
        (&["--url", "http://h", "--user", "ada"], "--user needs a password"),
        (
            &["--url", "http://h", "--token-file", "/nonexistent"],
            "cannot read the token in /nonexistent",
        ),
        (&["--url", "http://h", "--bucket", "b"], "needs --org"),
        (&["--url", "https://h", "--ca", "/etc/hostname"], "contains no certificate"),
        (&["--url", "http://h", "--spool", "/nonexistent"], "cannot take files from /nonexistent"),
        (&["--url", "http://h", "--timeout", "0s"], "--timeout must be"),
    ] {
        let ended = at(options);
        assert_eq!(ended.status, 2, "{options:?}");
        assert!(ended.words.contains(words), "{options:?}: {}", ended.words);
        assert!(!ended.words.contains("s3cret"), "{}", ended.words);
    }
    let empty = dir.path().join("push.toml");
    fs::write(&empty, "").unwrap();
    let ended = at(&["--config", os(&empty)]);
    assert!(ended.words.contains("no server given: set --url"), "{}", ended.words);
    assert_eq!((names(&spool.outbox()).len(), names(&spool.failed()).len()), (1, 0));
}

#[test]
fn the_file_gives_what_the_command_line_leaves_open() {
    let (spool, server) = (Spool::new(1, 1), Server::start(|_, _| Act::Take));
    let file = spool.path().join("push.toml");
    let text = format!(
        "url = {:?}\ndatabase = \"of_the_file\"\nspool = {:?}\ntimeout = \"5s\"\n",
        server.url(),
        os(&spool.path())
    );
    fs::write(&file, &text).unwrap();
    let ended = end(push().args(["--config", os(&file), "--retention-policy", "year"]));
    assert_eq!(ended.status, 0, "{}", ended.words);
    let head = &server.requests()[0].head;
    assert_eq!(head, "POST /write?db=of_the_file&rp=year&precision=ns HTTP/1.1");
    let ended = end(push().args(["--config", os(&file), "--database", "x", "--print-config"]));
    for part in ["database = \"x\"", "timeout = \"5s\"", "#every = \"5s\"", "#token_file = \"\""] {
        assert!(ended.stdout.contains(part), "{}", ended.stdout);
    }
    fs::write(&file, format!("{text}retires = 3\n")).unwrap();
    let ended = end(push().args(["--config", os(&file)]));
    assert_eq!(ended.status, 2);
    assert!(
        ended.words.contains(":5:1: unknown key `retires`, did you mean `retries`?"),
        "{}",
        ended.words
    );
}

#[test]
fn a_spool_that_cannot_be_written_is_refused_before_anything_is_sent() {
    if rustix::process::geteuid().is_root() {
        // Nothing is closed to root but what is no folder.
        let spool = Spool::new(1, 1);
        fs::write(spool.failed(), "").unwrap();
        let server = Server::start(|_, _| Act::Take);
        let ended = spool.push(&server.url(), &[]);
        assert_eq!((ended.status, server.requests().len()), (2, 0), "{}", ended.words);
        return;
    }
    let (spool, server) = (Spool::new(1, 1), Server::start(|_, _| Act::Take));
    fs::set_permissions(spool.outbox(), fs::Permissions::from_mode(0o500)).unwrap();
    let ended = spool.push(&server.url(), &[]);
    assert_eq!((ended.status, server.requests().len()), (2, 0), "{}", ended.words);
    assert!(ended.words.contains("a member of its group"), "{}", ended.words);
}
