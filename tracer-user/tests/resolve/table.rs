//! Each row of the tables, column by column.

use std::collections::BTreeMap;

use jobtrace::resolve::{Answer, Resolver, Role, sluid::Sluid};

const REAL: &str = include_str!("cgroup_paths.tsv");
const OTHERS: &str = include_str!("other_sites.tsv");

/// A row: a path and what is to be said of it.
pub struct Row {
    pub path: &'static str,
    manager: &'static str,
    job: &'static str,
    step: &'static str,
    task: &'static str,
    extra: &'static str,
}

pub fn rows() -> Vec<Row> {
    let lines = REAL.lines().skip(1).chain(OTHERS.lines().skip(1));
    let is_row = |line: &&str| !line.starts_with('#');
    lines
        .filter(is_row)
        .map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            let [path, manager, job, step, task, extra] = columns[..] else {
                panic!("six columns: {line:?}")
            };
            Row { path, manager, job, step, task, extra }
        })
        .collect()
}

fn check(row: &Row, answer: &Answer) {
    let seen = format!("{:?}: {answer:?}", row.path);
    let (manager, is_none) = match row.manager.strip_suffix("-none") {
        Some(manager) => (manager, true),
        None => (row.manager, row.manager == "none"),
    };
    assert_eq!(answer.manager, manager, "{seen}");
    assert_eq!(answer.is_job(), !is_none, "{seen}");
    let job = row.job.strip_prefix("sluid:").unwrap_or(row.job);
    assert_eq!(answer.job, job, "{seen}");
    assert_eq!(answer.sluid.as_deref(), row.job.strip_prefix("sluid:"), "{seen}");
    assert!(answer.sluid.iter().all(|sluid| Sluid::parse(sluid).is_some()), "{seen}");
    let text = |text: &'static str| Some(text).filter(|text| !text.is_empty());
    assert_eq!(answer.step.as_deref(), text(row.step), "{seen}");
    assert_eq!(answer.task.as_deref(), text(row.task), "{seen}");
    let mut role = if is_none { Role::NotAJob } else { Role::Job };
    let mut uid = None;
    for (key, value) in row.extra.split(' ').filter_map(|word| word.split_once('=')) {
        let value = value.trim_end_matches(',');
        let same = |text: &Option<String>| assert_eq!(text.as_deref(), Some(value), "{seen}");
        match key {
            "uid" => uid = Some(value.parse().unwrap()),
            "role" if value == "helper" => role = Role::Helper,
            "role" => role = Role::StepDaemon,
            "node" => same(&answer.node),
            "cluster" => same(&answer.cluster),
            "qos" => same(&answer.qos),
            "rt" => same(&answer.runtime),
            "container" => same(&answer.container),
            "user" => same(&answer.user),
            "array" => same(&answer.array),
            "rule" => assert_eq!(answer.rule, value, "{seen}"),
            "root" => assert_eq!(answer.root, value.parse::<usize>().unwrap(), "{seen}"),
            // The setting that gave a slice its name.
            "CgroupSlice" => assert!(row.path.contains(value)),
            _ => panic!("unknown word {key}={value} at {}", row.path),
        }
    }
    assert_eq!(answer.uid, uid, "{seen}");
    // What the corpus calls a helper of podman is one, without the word `role`.
    if row.extra == "helper" {
        role = Role::Helper;
    }
    assert_eq!(answer.role, role, "{seen}");
    assert_eq!(answer.root > 0, answer.is_job(), "{seen}");
}

#[test]
fn every_row_is_answered() {
    let resolver = Resolver::new(&[]).unwrap();
    for row in rows() {
        check(&row, &resolver.path(row.path));
    }
}

#[test]
fn every_rule_has_rows_of_other_sites() {
    let resolver = Resolver::new(&[]).unwrap();
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows().iter().filter(|row| row.extra.contains("rule=")) {
        *count.entry(resolver.path(row.path).rule).or_default() += 1;
    }
    for rule in Resolver::rule_names() {
        assert!(count.get(rule).copied().unwrap_or(0) >= 2, "{rule}: {count:?}");
    }
}

#[test]
fn a_row_is_the_same_from_inside_a_namespace_and_when_it_is_gone() {
    let resolver = Resolver::new(&[]).unwrap();
    for row in rows().iter().filter(|row| row.path.starts_with('/')) {
        let answer = resolver.path(row.path);
        assert_eq!(resolver.path(&format!("{} (deleted)", row.path)), answer);
        let mut climbed = resolver.path(&format!("/../..{}", row.path));
        if answer.is_job() {
            assert_eq!(climbed.root, answer.root + 2, "{}", row.path);
            climbed.root = answer.root;
        }
        assert_eq!(climbed, answer, "{}", row.path);
    }
}

#[test]
fn the_topmost_directory_is_a_part_of_the_path() {
    let resolver = Resolver::new(&[]).unwrap();
    for (path, root) in [
        ("/slurm/uid_1000/job_211/step_0", Some("/slurm/uid_1000/job_211")),
        ("/slurm/uid_1000/job_211", Some("/slurm/uid_1000/job_211")),
        ("//slurm//uid_1000/job_211//step_0/", Some("//slurm//uid_1000/job_211")),
        ("slurm/uid_1000/job_211/x", Some("slurm/uid_1000/job_211")),
        ("/../slurmstepd.scope/job_5/step_0", Some("/../slurmstepd.scope/job_5")),
        (r"/oar.slice/oar\x2du20\x2dj8.slice/x", Some(r"/oar.slice/oar\x2du20\x2dj8.slice")),
        ("/system.slice/sshd.service", None),
    ] {
        let answer = resolver.path(path);
        assert_eq!(answer.root_of(path), root, "{path}: {answer:?}");
        // It resolves to the same job.
        if let Some(root) = root {
            assert_eq!(resolver.path(root).job, answer.job);
        }
    }
}
