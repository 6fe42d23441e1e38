//! Clients of all kinds, before a loop that answers as scripted.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream as Client,
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use super::super::Queries;
use crate::{
    base::say::Level,
    commands::agent::{
        log::Log,
        query::{Ask, Caller},
    },
    model::{info::JobInfo, job::Job, point::Origin},
    record::{Record, head::Head, running},
};

/// A job of which the loop tells late.
const SLOW: &str = "slow";

fn record(job: &str) -> Record {
    let job = Job { job: job.into(), manager: "slurm".into(), ..Job::default() };
    Record::new(&Origin::default(), job, JobInfo::default(), 1_795_305_600_000_000_000)
}

/// A loop that has two jobs, of this user and of another one, until the value goes.
fn serve(dir: &Path) -> tokio::task::JoinHandle<()> {
    let mut queries = Queries::start(dir, &Arc::new(Log::new(Level::Error))).unwrap();
    tokio::task::spawn_local(async move {
        let own = rustix::process::getuid().as_raw();
        loop {
            match queries.next().await {
                Ask::Heads(answer) => {
                    let heads = [(own, "mine"), (own + 1, "theirs")];
                    let heads = heads.map(|(uid, job)| (Some(uid), Head::from(&record(job))));
                    drop(answer.send(heads.into()));
                }
                Ask::Records(job, _, answer) if job == SLOW => {
                    tokio::time::sleep(super::DEADLINE * 7 / 10).await;
                    drop(answer.send(vec![record(&job)]));
                }
                Ask::Records(job, _, answer) => drop(answer.send(vec![record(&job)])),
                Ask::Subject(job, caller, answer) => {
                    drop(answer.send(Err(anyhow::anyhow!("no {job} for {}", caller.who()))));
                }
                Ask::Used(..) => panic!("nothing was begun"),
            }
        }
    })
}

/// Does `work` beside a loop.
fn beside<T: Send + 'static>(work: impl FnOnce(&Path) -> T + Send + 'static) -> T {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let serving = serve(dir.path());
        let path = dir.path().join(running::SOCKET);
        let done = tokio::task::spawn_blocking(move || work(&path)).await;
        serving.abort();
        let _ = serving.await;
        assert!(!dir.path().join(running::SOCKET).exists(), "it is removed with its agent");
        done.unwrap()
    })
}

fn answer(socket: &Path, request: &[u8]) -> String {
    let mut stream = Client::connect(socket).unwrap();
    // Refused before all is read: the rest goes nowhere.
    let _ = stream.write_all(request);
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    text
}

#[test]
fn what_is_asked_for_is_answered_and_all_else_refused() {
    beside(|socket| {
        let jobs = |heads: Vec<Head>| -> Vec<_> {
            heads.into_iter().filter_map(|head| head.job).collect()
        };
        let mine = jobs(running::heads(socket).unwrap());
        let expected: &[&str] =
            if rustix::process::getuid().is_root() { &["mine", "theirs"] } else { &["mine"] };
        assert_eq!(mine, expected);
        assert_eq!(running::records(socket, "4711").unwrap(), [record("4711")]);
        for request in [
            &b"\n"[..],
            b"{}\n",
            b"{\"ask\":\"files\"}\n",
            b"{\"ask\":\"heads\",\"dir\":\"/etc\"}\n",
            b"{\"ask\":\"record\"}\n",
            b"\xff\xfe\n",
        ] {
            let text = answer(socket, request);
            assert!(text.starts_with("{\"error\":\"no request: "), "{request:?}: {text}");
        }
        for (seconds, refused) in [
            ("0.5", "no request: "),
            ("0", "file operations can be counted for 1s to 1h"),
            ("3601000000000", "file operations can be counted for 1s to 1h"),
            ("1000000000", "no 4711 for "),
        ] {
            let request = format!("{{\"ask\":\"io\",\"job\":\"4711\",\"for_ns\":{seconds}}}\n");
            let text = answer(socket, request.as_bytes());
            assert!(text.starts_with(&format!("{{\"error\":\"{refused}")), "{request}: {text}");
        }
        let long = answer(socket, &[b'x'; 1 << 20]);
        assert!(long.is_empty() || long.contains("the request is too long"), "{long}");
    });
}

#[test]
fn clients_that_say_nothing_keep_nobody_from_an_answer() {
    beside(|socket| {
        let path = socket.to_owned();
        let begin = Instant::now();
        let silent: Vec<_> =
            (0..super::MOST_OF_A_USER).map(|_| Client::connect(&path).unwrap()).collect();
        // One more of the same user.
        let refused = (0..100).find_map(|_| {
            thread::sleep(Duration::from_millis(10));
            running::heads(&path).err()
        });
        let refused = format!("{:#}", refused.unwrap());
        assert!(refused.contains("too many ask at once"), "{refused}");
        drop(silent);
        let freed = (0..500).find_map(|_| {
            thread::sleep(Duration::from_millis(10));
            running::heads(&path).ok()
        });
        assert!(freed.is_some() && begin.elapsed() < super::DEADLINE * 2);
    });
}

#[test]
fn question_and_answer_have_one_deadline() {
    beside(|socket| {
        assert_eq!(running::records(socket, SLOW).unwrap(), [record(SLOW)]);
        let mut late = Client::connect(socket).unwrap();
        thread::sleep(super::DEADLINE * 7 / 10);
        // It may have been given up already.
        let _ = late.write_all(b"{\"ask\":\"record\",\"job\":\"slow\"}\n");
        let mut text = String::new();
        let _ = late.read_to_string(&mut text);
        assert_eq!(text, "", "each in its own time, but not together");
    });
}

#[test]
fn a_caller_sees_his_own_and_who_may_sees_all() {
    let user = Caller { uid: 7, sees_all: false };
    assert!(user.may_see(Some(7)) && !user.may_see(Some(8)) && !user.may_see(None));
    let root = Caller { uid: 0, sees_all: true };
    assert!(root.may_see(Some(7)) && root.may_see(None));
    // Of the group: files' names are the owner's.
    let member = Caller { uid: 9, sees_all: true };
    assert!(user.may_dive(Some(7)) && !user.may_dive(Some(8)) && !user.may_dive(None));
    assert!(root.may_dive(Some(7)) && root.may_dive(None));
    assert!(member.may_see(Some(7)) && !member.may_dive(Some(7)) && member.may_dive(Some(9)));
    assert_eq!([user.who(), root.who()], ["user 7", "root"]);
}
