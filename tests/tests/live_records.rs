//! Who may read the records of whom: two users, their own files, copies of them, and what the agent's socket tells.

use std::{
    env,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use jobtrace::{
    base::say::Level,
    commands::agent::{
        log::Log,
        query::{Ask, Queries},
    },
    model::tables::fact,
    record::{head::Head, running, store::Store},
};
use jobtrace_tests::{
    agree::Agreement,
    daemon::{
        PATIENCE, Setup,
        site::{Site, enter},
    },
    rig::{folder, mount::Tmpfs, wait_for},
    sharing::{ADA, BOB, Sharing, TODAY, record},
    traced::program,
};

const DIR: &str = "JOBTRACE_TEST_STORE";
const SOCKET: &str = "JOBTRACE_TEST_SOCKET";
const AGENT: u32 = 61_000;

/// Run by the test below as another user: writes the records of two.
#[test]
fn as_the_agents_user() {
    let Some(dir) = env::var_os(DIR) else { return };
    let store = Store::open_for_users(Path::new(&dir), "n1").expect("a store");
    for record in [ADA, BOB].map(record) {
        store.save(&record).expect("saved");
    }
    assert!(!store.take_lacks_lists(), "there are lists");
}

/// Whether `uid` can do that, with no other rights than his own.
fn can(uid: u32, command: &[&str]) -> bool {
    let mut command_line = Command::new(command[0]);
    command_line.args(&command[1..]).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: setgroups is async-signal-safe, and drops root's groups before the user is taken on.
    unsafe {
        command_line.pre_exec(move || {
            let done = libc::setgroups(0, std::ptr::null()) == 0
                && libc::setgid(uid) == 0
                && libc::setuid(uid) == 0;
            done.then_some(()).ok_or_else(std::io::Error::last_os_error)
        });
    }
    command_line.status().expect("a command").success()
}

#[test]
fn each_user_reads_his_own_records_and_no_others() {
    let folder = folder("records").expect("a folder");
    let top = folder.path();
    // As the package's state folder: to be passed through.
    std::fs::set_permissions(top, std::fs::Permissions::from_mode(0o755)).expect("rights");
    let dir = top.join("records");
    std::fs::create_dir(&dir).expect("a folder");
    std::os::unix::fs::chown(&dir, Some(AGENT), Some(AGENT)).expect("an owner");
    let exe = top.join("test");
    std::fs::copy(env::current_exe().expect("a path"), &exe).expect("a copy");
    let jobtrace = top.join("jobtrace");
    std::fs::copy(program().expect("built"), &jobtrace).expect("a copy");
    // Without a capability: a user of its own.
    let mut writer = Command::new(exe);
    writer.args(["--exact", "as_the_agents_user"]).env(DIR, &dir).uid(AGENT).gid(AGENT);
    let output = writer.output().expect("the test itself");
    assert!(output.status.success(), "{output:?}");

    let path = |what: &str| dir.join(what).to_str().expect("a path").to_owned();
    for (own, other) in [(ADA, BOB), (BOB, ADA)] {
        let record = |of: u32| path(&format!("{of}/2026-11-22/slurm-{of}-{TODAY}@n1.json.gz"));
        let heads = |of: u32| path(&format!("{of}/2026-11-22/heads@n1.jsonl"));
        let day = |of: u32| path(&format!("{of}/2026-11-22"));
        for mine in [record(own), heads(own)] {
            assert!(can(own, &["cat", &mine]), "{own} reads {mine}");
            assert!(!can(own, &["test", "-w", &mine]), "{own} does not write {mine}");
        }
        for mine in [path(&own.to_string()), day(own)] {
            assert!(can(own, &["ls", &mine]), "{own} lists {mine}");
            assert!(!can(own, &["touch", &format!("{mine}/x")]), "{own} makes nothing there");
        }
        for theirs in [record(other), heads(other)] {
            assert!(!can(own, &["cat", &theirs]), "{own} does not read {theirs}");
        }
        for theirs in [record(other), heads(other), day(other)] {
            assert!(!can(own, &["stat", &theirs]), "{own} does not see {theirs}");
        }
        assert!(!can(own, &["ls", &path(&other.to_string())]), "{own} does not list {other}'s");
        assert!(!can(own, &["ls", &path("")]), "nobody sees whose there are");
        let (program, from) = (jobtrace.to_str().expect("a path"), path(""));
        let can_report = |of: u32| can(own, &[program, "report", &of.to_string(), "--from", &from]);
        assert!(can_report(own), "{own} reads of his job by its id");
        assert!(!can_report(other), "{own} reads nothing of {other}'s");
    }
    // The reader of both says how many it was refused.
    let all = jobtrace::record::store::read_heads(&dir, |_| true).expect("root reads all");
    assert_eq!((all.heads.len(), all.closed, all.damaged.len()), (2, 0, 0), "{all:?}");
}

/// Copies into a folder that a cluster shares, by a user of its own, with each of the three ways to protect them; on a
/// file system with access control lists, and on one without.
#[test]
fn copies_are_readable_as_asked() {
    let folder = folder("shared").expect("a folder");
    let sharing = Sharing::new(folder.path()).expect("records");
    let bare = Tmpfs::without_lists().expect("a file system");
    let mut agree = Agreement::new();
    sharing.agrees(&mut agree, folder.path(), true).expect("copies");
    sharing.agrees(&mut agree, bare.path(), false).expect("copies");
    agree.end();
    let (status, said) = sharing.copy("users", &folder.path().join("none")).expect("push");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("cannot copy records to "), "{said}");
}

/// Where the agent's own folder has no lists, it says so once, with what helps.
#[test]
fn the_agent_says_that_users_cannot_read_their_records() {
    let bare = Tmpfs::without_lists().expect("a file system");
    let site = Site::new().expect("a site");
    let setup = Setup::with(None, Some(&bare.path().join("records")), "").expect("a setup");
    let mut agent = setup.start().expect("an agent");
    let jobs = [ADA, BOB].map(|uid| {
        let mut command = Command::new("sleep");
        command
            .arg("600")
            .env("SLURM_JOB_ID", site.job(uid - ADA))
            .env("SLURM_JOB_UID", uid.to_string());
        enter(&mut command, &site.task(uid - ADA).expect("a job"));
        command.spawn().expect("a task")
    });
    let known = || agent_knows(&setup, &site).then_some(());
    wait_for("whose the jobs are", PATIENCE, known).expect("their users");
    for (number, mut task) in (0..).zip(jobs) {
        task.kill().expect("its end");
        task.wait().expect("its end");
        site.end(number).expect("its end");
    }
    let said = "has no access control lists: users cannot read the records of their jobs, root and the group can; \
                name a folder on another file system (`records.dir`)";
    agent.wait_for_words(said, 1).expect("words");
    agent.end_well().expect("an end");
    assert_eq!(agent.said(said), 1, "{}", agent.words());
}

/// Whether the agent knows whose the first two jobs of a site are.
fn agent_knows(setup: &Setup, site: &Site) -> bool {
    let socket = setup.state().join(running::SOCKET);
    let is_known = |(job, uid): (u32, u32)| {
        let records = running::records(&socket, &site.job(job)).unwrap_or_default();
        let mut uids = records.iter().map(|record| record.facts.number(const { fact("uid") }));
        uids.any(|known| known == Some(uid.into()))
    };
    [(0, ADA), (1, BOB)].into_iter().all(is_known)
}

/// Another user's jobs are not told of at the socket, whatever he asks.
#[test]
fn the_socket_tells_each_user_of_his_own_jobs() {
    if let Some(socket) = env::var_os(SOCKET) {
        let heads = running::heads(Path::new(&socket)).expect("an answer");
        heads.iter().for_each(|head| println!("seen:{}", head.job.as_deref().unwrap_or_default()));
        return;
    }
    let folder = folder("socket").expect("a folder");
    let exe = folder.path().join("test");
    std::fs::copy(env::current_exe().expect("a path"), &exe).expect("a copy");
    let socket = folder.path().join(running::SOCKET);
    let seen = move |uid: u32| {
        let mut client = Command::new(&exe);
        client.args(["--exact", "the_socket_tells_each_user_of_his_own_jobs", "--nocapture"]);
        let output = client.env(SOCKET, &socket).uid(uid).gid(uid).output().expect("the test");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let seen = text.lines().filter_map(|line| line.split_once("seen:"));
        seen.map(|(_, job)| job.to_owned()).collect::<Vec<_>>()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let asked = runtime.expect("a runtime").block_on(async {
        let log = Arc::new(Log::new(Level::Error));
        let mut queries = Queries::start(folder.path(), &log).expect("a socket");
        let asking = tokio::task::spawn_blocking(move || [0, ADA, BOB, AGENT].map(seen));
        tokio::pin!(asking);
        loop {
            tokio::select! {
                asked = &mut asking => break asked.expect("clients"),
                ask = queries.next() => match ask {
                    Ask::Heads(answer) => {
                        let head = |uid| (Some(uid), Head::from(&record(uid)));
                        let unknown = (None, Head::from(&record(1)));
                        drop(answer.send(vec![head(ADA), head(BOB), unknown]));
                    }
                    _ => unreachable!("nobody asks for it"),
                },
            }
        }
    });
    let [root, ada, bob, agent] = asked;
    assert_eq!((root.len(), ada, bob), (3, vec![ADA.to_string()], vec![BOB.to_string()]));
    assert!(agent.is_empty(), "{agent:?}");
}
