//! The software that jobs ran: what the agent's records tell of programs that nobody else runs, and what its lines do.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use jobtrace_tests::{
    daemon::{
        PATIENCE, Setup,
        site::{Site, enter},
    },
    rig::{etc::Etc, influx::Influx, mount::Ext4, wait_for},
};
use serde_json::Value as Json;

use crate::{have_ended, printed, push};

/// What a row tells of its own jobs. The rest depends on whatever else runs on the node.
const OF_ITS_JOBS: [&str; 12] = [
    "jobs",
    "users",
    "core_hours",
    "gpu_hours",
    "gpu_hours_busy",
    "gpu_idle_jobs",
    "gpu_not_held_jobs",
    "gpu_nodes_cpu_only_jobs",
    "nodes_p50",
    "nodes_p90",
    "several_pythons_jobs",
    "versions",
];

/// Runs a program of its own in job `number`, so long that somebody can ask it.
fn run(site: &Site, number: u32, program: &Path) {
    let mut command = Command::new(program);
    command.arg("2").env("SLURM_JOB_ID", site.job(number));
    enter(&mut command, &site.task(number).unwrap());
    let status = command.status().unwrap();
    assert!(status.success(), "{program:?}: {status}");
}

/// The rows of the programs whose names begin with `own`, by name: what they tell of their jobs, and which of these programs
/// go with them.
fn rows(text: &str, own: &str) -> BTreeMap<String, (Vec<Json>, Vec<String>)> {
    let mut rows = BTreeMap::new();
    for line in text.lines() {
        let row: Json = serde_json::from_str(line).unwrap();
        let name = row["name"].as_str().unwrap().to_owned();
        if !name.starts_with(own) {
            continue;
        }
        let told = OF_ITS_JOBS.iter().map(|key| {
            assert!(!row[key].is_null(), "no {key}: {row}");
            row[key].clone()
        });
        let with = row["with"].as_array().unwrap().iter().filter_map(|of| of["name"].as_str());
        let with = with.filter(|name| name.starts_with(own)).map(str::to_owned);
        assert!(rows.insert(name, (told.collect(), with.collect())).is_none(), "two rows: {text}");
    }
    rows
}

#[test]
fn software_is_the_same_of_records_and_of_lines() {
    let (etc, disk) = (Etc::mount(), Ext4::mount(64 << 20).unwrap());
    let influx = Influx::start().unwrap();
    influx.create_db("jobtrace").unwrap();
    let (setup, site) = (Setup::new("census = \"names\"\n").unwrap(), Site::new().unwrap());
    // Names that nobody else on this node or in this database has.
    let own = format!("only{}", site.job(0));
    let [often, twice, once] = ["often", "twice", "once"].map(|name| format!("{own}{name}"));
    let pattern = format!(r"/(?<name>{own}\w+)-(?<version>[\d.]+)$");
    etc.write(
        "software.toml",
        &format!("[[rule]]\nname = \"solver\"\nabout = \"program\"\npattern = '{pattern}'\n"),
    );
    let program = |name: &str, version: &str| {
        let program = disk.path().join(format!("{name}-{version}"));
        fs::copy("/bin/sleep", &program).unwrap();
        program
    };
    let mut agent = setup.start().unwrap();
    for (number, programs) in [
        (0, &[(&often, "1.2"), (&twice, "7")][..]),
        (1, &[(&often, "1.2"), (&twice, "7")]),
        (2, &[(&often, "1.3"), (&twice, "7"), (&once, "0.1")]),
        (3, &[(&often, "1.2")]),
    ] {
        programs.iter().for_each(|(name, version)| run(&site, number, &program(name, version)));
    }
    let jobs: Vec<_> = (0..4).map(|number| site.job(number)).collect();
    (0..4).for_each(|number| site.end(number).unwrap());
    wait_for("the jobs' ends are told", PATIENCE, || have_ended(&setup, &jobs, 1).then_some(()))
        .unwrap();
    agent.end_well().unwrap();
    let url = influx.url();
    push(&setup.outbox(), &url);

    let (folder, database) = (setup.records().to_str().unwrap(), ["--influx", &url]);
    let both = |words: &[&str]| [&["--from", folder], &database].map(|place| printed(words, place));
    let [of_records, of_lines] =
        both(&["software", "--by", "program", "--json"]).map(|text| rows(&text, &own));
    assert_eq!(of_records, of_lines);
    let jobs_of = |name: &str| of_lines[name].0[0].as_u64();
    assert_eq!([&often, &twice, &once].map(|name| jobs_of(name)), [Some(4), Some(3), Some(1)]);
    let versions = of_lines[&often].0.last().unwrap();
    assert_eq!(versions[0], serde_json::json!({ "version": "1.2", "jobs": 3 }), "{versions}");

    let installed = disk.path().join("installed.txt");
    fs::write(&installed, format!("{often}/1.2\n{once}/9\n{own}idle/3\n")).unwrap();
    let list = ["software", "--by", "program", "--csv", "--installed", installed.to_str().unwrap()];
    let [of_records, of_lines] = both(&list);
    assert_eq!(of_records, of_lines);
    let expected = format!("name,version,other_versions\n{own}idle,3,\n{once},9,0.1\n");
    assert_eq!(of_lines, expected);
}
