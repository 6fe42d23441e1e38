//! What a site's own file says of its software: checked before it counts, and taken over while the agent runs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use jobtrace::model::software::{Program, Software};
use jobtrace_tests::{
    agent::{Agent, records},
    daemon::Setup,
    rig::{
        etc::Etc,
        mount::Ext4,
        shaped::{Running, Shaped},
        wait_for,
    },
};

use crate::agent::{MOMENT, run, shaped, software, start, wait_for_records};

const FILE: &str = "software.toml";
const RELOADED: &str = "configuration reloaded: changed:";
const REFUSED: &str = "configuration not reloaded, the old one stays in effect";

/// A rule for programs of the kind `kind`.
fn of_programs(kind: &str) -> String {
    let pattern = r"/solver/(?<version>[\d.]+)/bin/(?<name>\w+)$";
    format!("[[rule]]\nname = \"{kind}\"\nabout = \"program\"\npattern = '{pattern}'\n")
}

/// One for stacks, whose group is called `group`.
fn of_stacks(group: &str) -> String {
    format!("[[rule]]\nname = \"tools\"\nabout = \"stack\"\npattern = '/tools/({group}\\w+)/'\n")
}

#[test]
fn a_rule_that_lacks_its_group_fails_the_check_with_its_cure() {
    let etc = Etc::mount();
    let watched = Setup::new("census = \"names\"\n").unwrap();
    let check = |setup: &Setup| {
        let output = setup.command(&["--check"]).unwrap().output().unwrap();
        let [said, wrong] = [output.stdout, output.stderr].map(String::from_utf8);
        (output.status.code(), said.unwrap(), wrong.unwrap())
    };
    let file = etc.write(FILE, &(of_programs("solver") + &of_stacks("")));
    let (status, said, wrong) = check(&watched);
    let expected = format!(
        "jobtrace: `census`: {}:5:1: pattern of `tools`: no group tells the stack's name: write (?<name>…) around it, as in \
         '^/proj/(?<name>[^/]+)/'\n",
        file.display()
    );
    assert_eq!((status, said.as_str(), wrong), (Some(2), "", expected));
    // An agent that watches nothing does not read the file.
    assert_eq!(check(&Setup::new("").unwrap()).0, Some(0));
    // As the message says.
    etc.write(FILE, &(of_programs("solver") + &of_stacks("?<name>")));
    let (status, said, wrong) = check(&watched);
    assert_eq!((status, wrong.as_str()), (Some(0), ""));
    assert!(said.contains("names of what each job runs"), "{said}");
}

/// A program in a folder that only a rule of the site's knows; it sleeps.
fn solver(disk: &Ext4) -> PathBuf {
    let folder = disk.path().join("solver/2.1/bin");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("crunch");
    fs::copy("/bin/sleep", &program).unwrap();
    program
}

/// Runs `program` in a job from its begin to its end; what is told of it then. Later rules name it anew while the agent still
/// knows it.
fn run_job(shaped: &Shaped, agent: &Agent, job: u32, program: &Path) -> Software {
    let directory = shaped.job(0, job, "step_0");
    // So long that somebody can ask it.
    run(&directory, job, &[program.to_str().unwrap(), "2"], &[]);
    shaped.remove_job(0, job);
    wait_for_records(agent, &[job]);
    // Where one is saved again meanwhile its head and it are not of one moment.
    let saved = wait_for("records", MOMENT, || records(&agent.records_dir()).ok());
    software(&saved.unwrap(), job)
}

/// The only program of its.
fn program(software: &Software) -> (&str, Option<&str>, Option<&str>) {
    let [Program { name, version, kind, .. }] = &software.programs[..] else {
        panic!("one program: {software:?}");
    };
    (name, version.as_deref(), kind.as_deref())
}

#[test]
fn new_rules_take_effect_at_a_reload_and_a_broken_file_leaves_the_old_ones() {
    const BEFORE: u32 = 12_051;
    const BROKEN: u32 = 12_052;
    const AFTER: u32 = 12_053;
    const LONG: u32 = 12_054;
    let (etc, disk) = (Etc::mount(), Ext4::mount(64 << 20).unwrap());
    let solver = solver(&disk);
    let (shaped, settings) = shaped();
    let agent = Agent::start(&settings).unwrap();
    // What is said twice in a minute is not written twice: each time with other settings beside.
    let reload = |rules: &str, more: &str, answer: &str| {
        etc.write(FILE, rules);
        agent.reload(&format!("{settings}{more}\n")).unwrap();
        wait_for(answer, MOMENT, || agent.log().contains(answer).then_some(()))
            .unwrap_or_else(|error| panic!("{error:#}: {}", agent.log()));
    };
    let long = shaped.job(0, LONG, "step_0");
    let runs = Running(start(&long, LONG, &[solver.to_str().unwrap(), "600"], &[]));
    let before = run_job(&shaped, &agent, BEFORE, &solver);
    assert_eq!((before.programs.len(), before.other_programs), (0, 1), "{before:?}");

    let file = format!("/etc/jobtrace/{FILE}");
    reload(&of_programs("solver"), "", &format!("{RELOADED} {file}\n"));
    let why = format!("{REFUSED}: {file}:5:1: pattern of `tools`: no group tells the stack's name");
    reload(&(of_programs("engine") + &of_stacks("")), "", &why);
    let broken = run_job(&shaped, &agent, BROKEN, &solver);
    assert_eq!(program(&broken), ("crunch", Some("2.1"), Some("solver")));

    let owners = "jobs.io_by_owner";
    let both = format!("{RELOADED} {owners}, {file}\n");
    reload(&of_programs("engine"), &format!("{owners} = false"), &both);
    let after = run_job(&shaped, &agent, AFTER, &solver);
    assert_eq!(program(&after), ("crunch", Some("2.1"), Some("engine")));
    drop(runs);
    shaped.remove_job(0, LONG);
    wait_for_records(&agent, &[LONG]);
    assert_eq!(agent.log().matches(REFUSED).count(), 1, "{}", agent.log());
    let (_, records) = agent.stop_with_records().unwrap();

    // It was seen before there was any rule.
    let long = software(&records, LONG);
    assert_eq!(program(&long), ("crunch", Some("2.1"), Some("engine")));
}
