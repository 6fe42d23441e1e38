//! What an administrator does to the agent: ends it, has it read its configuration again, starts it
//! twice, tries its configuration.

use std::{
    fs::{self, Permissions},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    time::Duration,
};

use jobtrace_tests::{
    daemon::{PATIENCE, Setup, files, site::Site},
    rig::wait_for,
    work::monotonic_ns,
};

/// The longest that an end may take.
pub const QUICK: Duration = Duration::from_secs(2);
const NOBODY: u32 = 65534;

#[test]
fn it_ends_at_once_with_a_crowd_of_jobs_and_writes_them_all() {
    let (setup, site) = (Setup::new("").unwrap(), Site::new().unwrap());
    let mut agent = setup.start().unwrap();
    let begin = monotonic_ns();
    (0..200).for_each(|number| drop(site.task(number).unwrap()));
    let told = || files::jobs(&files::points(&setup.outbox()).unwrap(), "job_info");
    // Each slot made waits for the kernel, about 15 ms: that is the kernel's pace.
    let missing = || {
        let told = told();
        (0..200).filter(|number| !told.contains(&site.job(*number))).count()
    };
    wait_for("200 jobs", PATIENCE, || (missing() == 0).then_some(())).unwrap();
    eprintln!("200 jobs are known after {} ms", (monotonic_ns() - begin) / 1_000_000);
    let took = agent.end_well().unwrap();
    assert!(took < QUICK, "{took:?}");
    eprintln!("and it ended in {took:?}");

    let mut agent = setup.start().unwrap();
    let (status, took) = agent.end_by(libc::SIGINT).unwrap();
    assert!(status.success() && took < QUICK, "{status} {took:?}: {}", agent.words());
}

#[test]
fn a_configuration_that_is_right_counts_from_the_next_file_on() {
    let setup = Setup::new("").unwrap();
    let mut agent = setup.start().unwrap();
    let outbox = setup.outbox();
    let files = || files::list(&outbox).unwrap();
    // The next file that is written; older ones may have been dropped.
    let next_has_buckets = || {
        let before = files().pop();
        let next =
            wait_for("a file", PATIENCE, || files().pop().filter(|_| files().pop() != before));
        files::text(&next.unwrap()).unwrap().contains("job_hist,")
    };
    assert!(!next_has_buckets());

    setup.configure("spool.max_files = 4\n[export]\nprofile = \"histogram\"").unwrap();
    agent.signal(libc::SIGHUP);
    agent
        .wait_for_words("configuration reloaded: changed: spool.max_files, export.profile", 1)
        .unwrap();
    assert!(next_has_buckets());

    setup.configure("[export]\nprofile = \"wrong\"").unwrap();
    agent.signal(libc::SIGHUP);
    agent.wait_for_words("configuration not reloaded", 1).unwrap();
    // Each time: the last answer says what is in effect.
    agent.signal(libc::SIGHUP);
    agent.wait_for_words("configuration not reloaded", 2).unwrap();
    assert!(agent.said("agent.toml:8:11: `export.profile` = \"wrong\"") == 2, "{}", agent.words());
    assert!(next_has_buckets(), "the configuration before stays");
    // The cap from the first of the two.
    wait_for("a file to be dropped", PATIENCE, || {
        agent.words().contains("the spool is not emptied").then_some(())
    })
    .unwrap_or_else(|error| panic!("{error}: {}", agent.words()));
    assert!(files().len() <= 5);
    agent.end_well().unwrap();
}

#[test]
fn a_second_agent_is_refused_and_told_who_the_first_is() {
    let setup = Setup::new("").unwrap();
    let mut agent = setup.start().unwrap();
    let output = setup.command(&[]).unwrap().output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words}");
    let name = format!("another agent runs on this node: pid {}, since ", agent.pid());
    assert!(words.contains(&name), "{words}");
    agent.end_well().unwrap();
    setup.start().unwrap().end_well().unwrap();
}

#[test]
fn anybody_may_try_a_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let open = |mode| fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
    let file = folder.path().join("agent.toml");
    let text = format!(
        "state.dir = {0:?}\nspool.dir = {0:?}\nrecords.dir = {1:?}\n",
        folder.path(),
        folder.path().join("records")
    );
    fs::write(&file, text).unwrap();
    // What is below root's own folders, nobody may execute.
    let program = folder.path().join("jobtrace");
    fs::copy(jobtrace_tests::traced::program().unwrap(), &program).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let ask = |what: &str| {
        let mut command = std::process::Command::new(&program);
        command.args(["agent", what, "--config"]).arg(&file).uid(NOBODY).gid(NOBODY);
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    open(0o755);
    let (status, printed, said) = ask("--print-config");
    assert_eq!((status, said.as_str()), (Some(0), ""));
    assert!(printed.contains(&format!("dir = {:?}", folder.path().display().to_string())));
    let (status, printed, said) = ask("--check");
    assert_eq!((status, printed.as_str()), (Some(2), ""), "{said}");
    assert!(said.contains("check as the user that the agent runs as"), "{said}");
    open(0o777);
    let (status, printed, said) = ask("--check");
    assert_eq!((status, said.as_str()), (Some(0), ""));
    assert!(printed.contains("every 10s"), "{printed}");
}
