//! Trees as hosts have them, from the mount point down to the caller.

use super::*;

const ALL: &str = "cpuset cpu io memory pids";

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// `name offered > active`, the last one with processes; `/` is the root, which has some too.
fn tree(rows: &[(&str, &str, &str)]) -> Vec<CgroupLevel> {
    let last = rows.len() - 1;
    let level = |(at, (name, offered, active)): (usize, &(&str, &str, &str))| CgroupLevel {
        name: (*name).into(),
        offered: words(offered),
        active: words(active),
        is_root: *name == "/",
        holds_processes: at == last || *name == "/",
    };
    rows.iter().enumerate().map(level).collect()
}

fn login(root: &str, slice: &str) -> Vec<CgroupLevel> {
    tree(&[
        ("/", ALL, root),
        ("user.slice", root, slice),
        ("user-1000.slice", slice, slice),
        ("session-3.scope", slice, ""),
    ])
}

fn switches(choice: &Choice) -> String {
    let all: Vec<_> =
        choice.switches.iter().map(|s| format!("{}@{}", s.controller, s.level)).collect();
    all.join(" ")
}

#[test]
fn a_login_session_is_left_for_its_slice() {
    let rows = [
        ("memory pids", "memory pids", "io@0 io@1 io@2"),
        ("cpu io memory pids", "cpu memory pids", "io@1 io@2"),
        ("cpu io memory pids", "io memory pids", ""),
        ("", "", "memory@0 memory@1 memory@2 io@0 io@1 io@2 pids@0 pids@1 pids@2"),
    ];
    for (root, slice, expected) in rows {
        let choice = choose(&login(root, slice), &[]);
        assert_eq!((choice.parent, switches(&choice).as_str()), (2, expected), "{root} > {slice}");
        assert_eq!((choice.missing, choice.why_below), (vec![], None));
    }
}

#[test]
fn a_tasks_limit_goes_along_and_any_other_setting_keeps_the_command() {
    let levels = login("memory pids", "memory pids");
    assert_eq!(choose(&levels, &words("pids.max")).parent, 2);
    for name in ["memory.max", "memory.high", "cpu.max", "cpu.weight", "io.max", "cpuset.cpus"] {
        let choice = choose(&levels, &words(&format!("{name} pids.max")));
        assert_eq!((choice.parent, switches(&choice).as_str()), (3, ""), "{name}");
        assert_eq!(choice.missing, COUNTING);
        assert!(choice.why_below.unwrap().contains(&format!("its own {name} must stay in effect")));
    }
}

#[test]
fn no_scheduler_and_no_runtime_loses_its_processes() {
    let rows = [
        ("system.slice", "docker-0123.scope"),
        ("system.slice", "crond.service"),
        ("user", "task_0"),
        ("jobs", "123"),
        ("pbspro.slice", "pbspro-7.slice"),
        ("machine.slice", "libpod-0123.scope"),
        ("kubepods-besteffort-pod1.slice", "cri-containerd-0123.scope"),
        ("slurmstepd.scope", "run-1.scope"),
    ];
    for (parent, own) in rows {
        let levels = tree(&[("/", ALL, ALL), (parent, ALL, ALL), (own, ALL, "")]);
        let choice = choose(&levels, &[]);
        assert_eq!((choice.parent, choice.missing.len()), (2, 3), "{parent}/{own}");
        assert!(choice.why_below.unwrap().contains("only a session's scope"));
    }
}

#[test]
fn below_the_caller_where_the_kernel_allows_it() {
    let root = tree(&[("/", ALL, "memory")]);
    let choice = choose(&root, &[]);
    assert_eq!((choice.parent, switches(&choice).as_str()), (0, "io@0 pids@0"));
    let hybrid = tree(&[("/", "hugetlb", ""), ("session-1.scope", "", "")]);
    let choice = choose(&hybrid, &[]);
    assert_eq!(choice, Choice { parent: 1, ..Choice::default() }, "nothing to be had anywhere");
    let mut empty = login("io memory pids", "io memory pids");
    empty[3].holds_processes = false;
    let choice = choose(&empty, &words("memory.max"));
    assert_eq!((choice.parent, switches(&choice).as_str()), (3, "memory@3 io@3 pids@3"));
}

#[test]
fn a_namespace_ends_the_way_up() {
    let mut inside = tree(&[("", "memory pids", "")]);
    let choice = choose(&inside, &[]);
    assert_eq!((choice.parent, choice.missing), (0, vec!["memory", "pids"]));
    assert!(choice.why_below.unwrap().contains("no cgroup above"));
    // Below a systemd in it, with processes in the namespace's own root: nothing can be switched on.
    inside = login("", "");
    (inside[0].is_root, inside[0].name) = (false, String::new());
    let choice = choose(&inside, &[]);
    assert_eq!((choice.parent, choice.missing.len()), (3, 3));
    assert!(choose(&[], &[]).missing.is_empty());
}
