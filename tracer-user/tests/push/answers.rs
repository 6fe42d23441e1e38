//! What each answer of a server does to the files.

use std::{fs, time::Duration};

use super::{
    server::{Act, Server},
    spool::{Spool, lines_in, name, names, once, points},
};

fn say(status: u16, body: &str) -> Act {
    Act::Say(status, "", body.to_owned())
}

#[test]
fn what_is_taken_leaves_the_outbox() {
    let (spool, server) = (Spool::new(7, 50), Server::start(|_, _| Act::Take));
    let ended = spool.push(&server.url(), &[]);
    assert_eq!(ended.status, 0, "{}", ended.words);
    assert!(ended.words.contains("7 files sent: 350 lines"), "{}", ended.words);
    assert_eq!(once(&server.stored()), points(0..7, 50));
    assert_eq!(names(&spool.outbox()).len() + names(&spool.failed()).len(), 0);
    let requests = server.requests();
    assert_eq!(requests.len(), 7);
    for (at, request) in requests.iter().enumerate() {
        assert_eq!(request.head, "POST /write?db=jobtrace&precision=ns HTTP/1.1");
        assert!(!request.headers.contains_key("authorization"));
        assert!(!request.text.contains('#'), "comments stay at home");
        assert!(request.text.starts_with(&format!("job_sched,host=n1,job=0 forks={at}i")));
    }
    assert_eq!(spool.push(&server.url(), &[]).status, 0, "nothing to send is well");
}

#[test]
fn a_file_with_refused_lines_is_kept_with_the_servers_words() {
    let reason = r#"{"error":"partial write: field type conflict: input field \"forks\""}"#;
    for status in [400, 422, 201] {
        let server = Server::start(move |_, request| {
            if request.text.contains("forks=1i") { say(status, reason) } else { Act::Take }
        });
        let spool = Spool::new(3, 4);
        let ended = spool.push(&server.url(), &[]);
        assert_eq!(ended.status, 1, "{}", ended.words);
        for part in ["moved to", "field type conflict", "2 files sent", "1 file refused"] {
            assert!(ended.words.contains(part), "{}", ended.words);
        }
        assert_eq!(names(&spool.outbox()).len(), 0);
        let beside = format!("{}.reason", name(1));
        assert_eq!(names(&spool.failed()), [name(1), beside.clone()].into());
        assert_eq!(lines_in(&spool.failed()), points([1], 4), "the file is as it was");
        let words = fs::read_to_string(spool.failed().join(beside)).unwrap();
        for part in [&name(1), reason, "within lines 3 to 6", &server.url(), &status.to_string()] {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert_eq!(once(&server.stored()), points([0, 2], 4));
        // The cause is gone and the file is put back.
        fs::rename(spool.failed().join(name(1)), spool.outbox().join(name(1))).unwrap();
        let server = Server::start(|_, _| Act::Take);
        assert_eq!(spool.push(&server.url(), &[]).status, 0);
        assert_eq!(once(&server.stored()), points([1], 4));
        assert_eq!(names(&spool.failed()).len(), 0, "the words of a file that is gone go too");
    }
}

#[test]
fn who_is_not_let_in_stops_and_moves_nothing() {
    for (status, options, words) in [
        (401, &[][..], "--password-file"),
        (401, &["--api", "v3"], "--token-file"),
        (403, &[], "GRANT WRITE"),
        (404, &[], "CREATE DATABASE"),
        (404, &["--org", "o", "--bucket", "b"], "influx bucket create"),
        (405, &[], "check --url"),
        (200, &[], "something else"),
    ] {
        let server = Server::start(move |_, _| say(status, "{\"error\":\"go \u{1b}[31maway\"}"));
        let spool = Spool::new(3, 4);
        let before = names(&spool.outbox());
        let ended = spool.push(&server.url(), options);
        assert_eq!(ended.status, 2, "{status}: {}", ended.words);
        for part in [words, "all files stay", &status.to_string(), &server.url(), "away"] {
            assert!(ended.words.contains(part), "{status}: {}", ended.words);
        }
        assert!(!ended.words.contains('\u{1b}'));
        assert_eq!((names(&spool.outbox()), names(&spool.failed()).len()), (before, 0));
        assert_eq!(server.requests().len(), 1, "nobody knocks twice");
    }
}

#[test]
fn a_redirection_is_not_followed() {
    let other = Server::start(|_, _| Act::Take);
    let place: &'static str = format!("location: {}/write\r\n", other.url()).leak();
    let server = Server::start(move |_, _| Act::Say(307, place, String::new()));
    let spool = Spool::new(1, 1);
    let ended = spool.push(&server.url(), &[]);
    assert_eq!(ended.status, 2);
    assert!(
        ended.words.contains(&other.url()) && ended.words.contains("set --url"),
        "{}",
        ended.words
    );
    assert_eq!((other.requests().len(), names(&spool.outbox()).len()), (0, 1));
}

#[test]
fn what_is_too_large_is_halved_until_it_fits() {
    let server = Server::start(|_, request| match request.text.len() {
        0..=2000 => Act::Take,
        _ => say(413, "{\"error\":\"Request Entity Too Large\"}"),
    });
    let spool = Spool::new(3, 300);
    let ended = spool.push(&server.url(), &[]);
    assert_eq!(ended.status, 0, "{}", ended.words);
    assert_eq!(once(&server.stored()), points(0..3, 300), "each line once");
    let refused = server.requests().iter().filter(|request| request.text.len() > 2000).count();
    assert!((3..=5).contains(&refused), "learnt once, not for each file: {refused}");
    assert_eq!(names(&spool.outbox()).len() + names(&spool.failed()).len(), 0);
}

#[test]
fn a_line_that_is_too_large_alone_is_refused() {
    let server = Server::start(|_, request| {
        if request.text.contains("job=2 ") { say(413, "too large") } else { Act::Take }
    });
    let spool = Spool::new(1, 8);
    let ended = spool.push(&server.url(), &[]);
    assert_eq!(ended.status, 1, "{}", ended.words);
    let mut expected = points([0], 8);
    expected.retain(|line| !line.contains("job=2 "));
    assert_eq!(once(&server.stored()), expected);
    let words = fs::read_to_string(spool.failed().join(format!("{}.reason", name(0)))).unwrap();
    assert!(words.contains("the server answers 413: too large"), "{words}");
}

#[test]
fn a_server_that_asks_for_time_gets_it() {
    for status in [429, 503] {
        let server = Server::start(move |number, _| match number {
            0 => Act::Say(status, "Retry-After: 2\r\n", "busy".into()),
            _ => Act::Take,
        });
        let spool = Spool::new(1, 3);
        let ended = spool.push(&server.url(), &[]);
        assert_eq!(ended.status, 0, "{}", ended.words);
        assert!(ended.words.contains("the server accepts lines again"), "{}", ended.words);
        let requests = server.requests();
        let waited = requests[1].at - requests[0].at;
        assert!((2000..4000).contains(&waited.as_millis()), "{waited:?}");
        assert_eq!(once(&server.stored()), points([0], 3));
    }
}

#[test]
fn a_server_that_is_out_of_order_is_tried_again_with_growing_waits() {
    let server = Server::start(|number, _| match number {
        0 | 1 => say(500, "timeout"),
        _ => Act::Take,
    });
    let spool = Spool::new(1, 3);
    let ended = spool.push(&server.url(), &[]);
    assert_eq!(ended.status, 0, "{}", ended.words);
    let requests = server.requests();
    let waits: Vec<_> = requests.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    for (wait, bounds) in waits.iter().zip([500..1900, 1000..2900]) {
        assert!(bounds.contains(&wait.as_millis()), "{waits:?}");
    }
    assert_eq!(waits.len(), 2);
}

#[test]
fn attempts_end_and_the_files_stay() {
    let server = Server::start(|_, _| say(503, "hinted handoff queue not empty"));
    let spool = Spool::new(3, 3);
    let before = names(&spool.outbox());
    let ended = spool.push(&server.url(), &["--retries", "2"]);
    assert_eq!(ended.status, 1, "{}", ended.words);
    for part in ["hinted handoff", "given up after 2 attempts", "3 files not sent, still there"] {
        assert!(ended.words.contains(part), "{}", ended.words);
    }
    assert_eq!((names(&spool.outbox()), names(&spool.failed()).len()), (before, 0));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn one_file_that_makes_the_server_fail_does_not_hold_up_the_others() {
    let server = Server::start(|_, request| {
        if request.text.contains("forks=0i") { say(500, "panic") } else { Act::Take }
    });
    let spool = Spool::new(6, 3);
    let ended = spool.push(&server.url(), &["--retries", "2"]);
    assert_eq!(ended.status, 1, "{}", ended.words);
    assert_eq!(once(&server.stored()), points(1..6, 3));
    assert_eq!(names(&spool.outbox()), [name(0)].into());
}

#[test]
fn the_limit_of_a_body_is_kept_also_by_large_files() {
    let (spool, server) = (Spool::new(1, 5000), Server::start(|_, _| Act::Take));
    let ended = spool.push(&server.url(), &["--max-body", "64KiB", "--timeout", "20s"]);
    assert_eq!(ended.status, 0, "{}", ended.words);
    assert_eq!(once(&server.stored()), points([0], 5000));
    let requests = server.requests();
    let sizes: Vec<_> = requests.iter().map(|request| request.text.len()).collect();
    assert!(sizes.iter().all(|size| *size <= 64 << 10), "{sizes:?}");
    let all: usize = sizes.iter().sum();
    assert_eq!(sizes.len(), all.div_ceil((64 << 10) - 100), "as few as can be");
    let span = requests.last().unwrap().at - requests[0].at;
    assert!(span < Duration::from_secs(20));
}
