//! Servers that hang, break off, are not there, or die after they have stored.

use std::{collections::BTreeMap, time::Instant};

use super::{
    server::{Act, Server, dead_port},
    spool::{Spool, names, points},
};

/// How often each line was stored: what comes twice must be the very same.
fn assert_stored(stored: &BTreeMap<String, usize>, files: usize, lines: usize, most: usize) {
    assert_eq!(
        stored.keys().cloned().collect::<std::collections::BTreeSet<_>>(),
        points(0..files, lines)
    );
    assert!(stored.values().all(|times| (1..=most).contains(times)), "{stored:?}");
}

#[test]
fn a_server_that_hangs_is_left_and_tried_again() {
    let server = Server::start(|number, _| if number == 0 { Act::Hang } else { Act::Take });
    let spool = Spool::new(2, 3);
    let begin = Instant::now();
    let ended = spool.push(&server.url(), &["--timeout", "1s"]);
    assert_eq!(ended.status, 0, "{}", ended.words);
    assert!((1.0..10.0).contains(&begin.elapsed().as_secs_f64()));
    assert!(ended.words.contains("no answer in time"), "{}", ended.words);
    assert_stored(&server.stored(), 2, 3, 1);
    assert_eq!(names(&spool.outbox()).len(), 0);
}

#[test]
fn an_answer_that_breaks_off_is_none() {
    for answer in
        ["", "HTT", "HTTP/1.1 20", "HTTP/1.1 204 No Content\r\nserver: x", "no HTTP\r\n\r\n"]
    {
        let server = Server::start(move |number, _| match number {
            0 => Act::TakeAndWrite(answer),
            _ => Act::Take,
        });
        let spool = Spool::new(1, 3);
        let ended = spool.push(&server.url(), &[]);
        assert_eq!(ended.status, 0, "{answer:?}: {}", ended.words);
        assert!(ended.words.contains("files stay; next attempt in"), "{answer:?}: {}", ended.words);
        assert_stored(&server.stored(), 1, 3, 2);
        let texts: Vec<_> = server.requests().into_iter().map(|request| request.text).collect();
        assert_eq!(texts.len(), 2, "{answer:?}");
        assert_eq!(texts[0], texts[1], "sent again as it was");
        assert_eq!(names(&spool.outbox()).len(), 0);
    }
}

#[test]
fn words_that_break_off_do_not_change_what_the_status_says() {
    let answer = "HTTP/1.1 400 Bad Request\r\ncontent-length: 100\r\n\r\n{\"error\":\"partial wri";
    let server = Server::start(move |_, _| Act::TakeAndWrite(answer));
    let spool = Spool::new(1, 3);
    let ended = spool.push(&server.url(), &[]);
    assert_eq!(ended.status, 1, "{}", ended.words);
    assert_eq!(names(&spool.failed()).len(), 2);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_server_that_closes_after_each_answer_costs_no_attempt() {
    let answer = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
    let server = Server::start(move |_, _| Act::TakeAndWrite(answer));
    let spool = Spool::new(5, 3);
    let ended = spool.push(&server.url(), &["--retries", "1"]);
    assert_eq!(ended.status, 0, "{}", ended.words);
    assert_stored(&server.stored(), 5, 3, 1);
}

#[test]
fn nobody_there_is_no_loss() {
    let spool = Spool::new(2, 3);
    let before = names(&spool.outbox());
    for url in
        [format!("http://127.0.0.1:{}", dead_port()), "http://no-such-host.invalid:8086".into()]
    {
        let ended = spool.push(&url, &["--retries", "2", "--timeout", "5s"]);
        assert_eq!(ended.status, 1, "{}", ended.words);
        assert!(ended.words.contains("given up after 2 attempts"), "{}", ended.words);
        assert_eq!((names(&spool.outbox()), names(&spool.failed()).len()), (before.clone(), 0));
    }
}

#[test]
fn a_server_that_refuses_a_large_body_at_its_head_is_understood() {
    // Random text, so that it stays large when it is packed.
    let mut state = 1u64;
    let mut line = || {
        let mut text = String::from("job_info,host=n1,job=");
        for _ in 0..3000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text.push(char::from(b'a' + (state >> 59) as u8 % 26));
        }
        text + " n=1i 1700000000000000000\n"
    };
    let text: String = (0..1000).map(|_| line()).collect();
    let spool = Spool::new(0, 0);
    spool.write("large.lp.gz", &text);
    let server = Server::start(|_, request| {
        let length: usize = request.headers["content-length"].parse().unwrap();
        if length > 1 << 20 { Act::SayEarly(413) } else { Act::Take }
    });
    let ended = spool.push(&server.url(), &["--retries", "1"]);
    assert_eq!(ended.status, 0, "{}", ended.words);
    assert_eq!(server.stored().values().sum::<usize>(), 1000);
    assert!(server.requests()[0].headers.contains_key("expect"));
}
