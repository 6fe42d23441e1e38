//! docs/METRICS.md against what is written: no field and no tag that it does not name, and no fact that
//! nobody writes; docs/ARCHITECTURE.md against the types' sizes and the files that it names.

use std::collections::BTreeSet;

use clap::ValueEnum;
use jobtrace::{
    base::identity::Capacity,
    commands::agent::details::Details,
    docs,
    lines::profile::{BucketStyle, Profile, points},
    model::{
        group::{Group, Value},
        hist::{Hist, QUANTILES},
        info::{Exit, JobInfo},
        job::{Job, JobStats, Losses},
        point::{Origin, Point},
        points::info_point,
        software::{Library, Package, Program, Software, Stack},
        software_point::{UserTag, point},
        tables::{self, FACTS, SOFTWARE_FIELDS},
    },
    resolve::{Resolver, facts::JobFacts},
};
use tracer_ebpf::table::Kind;

fn origin() -> Origin {
    Origin { cluster: "c1".into(), host: "n1".into() }
}

fn job() -> Job {
    let [job, manager, user, step] = ["4", "slurm", "ada", "0"].map(str::to_owned);
    Job { job, manager, user, step, life: 0 }
}

/// Every measurement with every field known.
fn groups() -> Vec<Group> {
    let full = |table: &'static tracer_ebpf::table::Measurement| {
        let tags = table.tags.iter().map(|tag| format!("a-{tag}")).collect();
        let mut group = Group::unknown(table, tags);
        for (field, value) in table.fields.iter().zip(&mut group.values) {
            *value = Some(match field.kind {
                Kind::Histogram => Value::Histogram(Hist::from_buckets(70, 70, [(1, 3)])),
                _ => Value::Number(7),
            });
        }
        group
    };
    tables::ALL.map(full).into()
}

/// The lines of `job_info` of a run, and of a job of the agent's of which everything is known.
fn infos() -> Vec<Point> {
    let info = JobInfo { name: "a".into(), command: "a b".into(), ..JobInfo::default() };
    let exit = Exit { code: Some(0), signal: None };
    let of_run = info_point(&origin(), &job(), &info, Some((9, exit)), Some(4), 9);
    let text = || Some("1".to_owned());
    let facts = JobFacts {
        name: text(),
        account: text(),
        queue: text(),
        nodes: text(),
        node_count: Some(1),
        tasks: Some(1),
        array_job: text(),
        array_task: text(),
        gpus: text(),
        cores: Some(1),
        memory_per_node_bytes: Some(1),
        memory_per_core_bytes: Some(1),
        memory_per_gpu_bytes: Some(1),
        restarts: Some(1),
        submitted_s: Some(1),
        start_s: Some(1),
        end_s: Some(1),
        limit_s: Some(1),
        uid: Some(1),
        ..JobFacts::default()
    };
    let mut answer = Resolver::new(&[]).unwrap().path("/slurm/uid_1/job_4");
    for told in [&mut answer.sluid, &mut answer.container, &mut answer.qos, &mut answer.runtime] {
        *told = text();
    }
    let mut details = Details::new(&answer, 5, 0);
    details.learn(&facts);
    details.set_node(Capacity { cores: Some(2), memory_bytes: Some(1) }, &[]);
    details.add(&mut groups(), &Losses::default(), 9);
    details.set_counted_from(6);
    details.set_ended(8);
    vec![of_run, details.due_info(&origin(), &job(), 9, false).unwrap()]
}

/// The line of `job_software` of a job of which everything is known.
fn of_software() -> Point {
    let text = || Some("3.11".to_owned());
    let name = || "x".to_owned();
    let software = Software {
        by: [Default::default()].into(),
        programs: vec![Program {
            name: name(),
            version: text(),
            kind: Some("python".into()),
            executions: 1,
        }],
        libraries: vec![Library { name: name(), ..Library::default() }],
        packages: vec![Package { name: name(), ..Package::default() }],
        stacks: vec![Stack { kind: name(), ..Stack::default() }],
        python_processes_most: Some(1),
        ..Software::default()
    };
    point(&origin(), &job(), &software, &UserTag::On, 9)
}

/// The rows of `name` in METRICS.md.
fn section(text: &str, name: &str) -> String {
    let (_, rest) = text.split_once(&format!("\n## {name}\n")).expect(name);
    rest.split("\n## ").next().unwrap().to_owned()
}

#[test]
fn what_is_written_is_explained() {
    let text = docs::metrics();
    let (introduction, _) = text.split_once("\n## ").unwrap();
    let mut all = infos();
    all.push(of_software());
    let stats = JobStats { job: job(), groups: groups() };
    for style in BucketStyle::value_variants() {
        all.extend(points(&origin(), &stats, Profile::Full, *style, 9, 10));
    }
    let parts = ["count", "sum", "min", "max"].into_iter().chain(QUANTILES.map(|(part, _)| part));
    let parts: Vec<_> = parts.map(|part| format!("_{part}")).collect();
    let totals: BTreeSet<_> = stats
        .groups
        .iter()
        .flat_map(|group| group.measurement.fields.iter().map(move |field| (group, field)))
        .map(|(group, field)| {
            let op = group.tags.last().map(String::as_str);
            tables::total_name(group.measurement, op, field)
        })
        .collect();
    let mut seen = BTreeSet::new();
    for point in &all {
        let own = section(&text, &point.measurement);
        let of_table = |key: &str| tables::ALL.iter().any(|table| table.tags.contains(&key));
        for (key, _) in &point.tags {
            let tag = format!("`{key}`");
            let is_known = introduction.contains(&tag) || own.contains(&tag);
            // It says that the tags of the histogram's measurement are there.
            let is_known = is_known || point.measurement == "job_hist" && of_table(key);
            assert!(is_known, "{} has no tag {key}", point.measurement);
        }
        for (key, _) in &point.fields {
            let row = |name: &str| own.contains(&format!("| `{name}` |"));
            let histogram = || parts.iter().filter_map(|part| key.strip_suffix(part)).any(row);
            let is_known = row(key)
                || histogram()
                || introduction.contains(&format!("\n| `{key}` |"))
                || point.measurement == "job_info" && totals.contains(&**key);
            assert!(is_known, "{} has no row for {key}", point.measurement);
            seen.insert((point.measurement.clone(), key.clone()));
        }
        if point.measurement == "job_hist" {
            assert_eq!(point.fields.len(), 1);
            assert!(own.contains(&format!("| `{}` | This", point.fields[0].0)), "{own}");
        }
    }
    for fact in FACTS {
        assert!(seen.contains(&("job_info".into(), fact.name.into())), "{}", fact.name);
    }
    for (field, ..) in SOFTWARE_FIELDS {
        assert!(seen.contains(&("job_software".into(), (*field).into())), "{field}");
    }
    assert!(seen.len() > 300, "{}", seen.len());
}

#[test]
fn the_sizes_that_architecture_tells_are_the_types() {
    use tracer_ebpf::{
        records::{Cpu, LifeEvent, TaskRecord},
        tables::{job::JobBank, latency::LatencyBank},
    };
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/ARCHITECTURE.md");
    let text = std::fs::read_to_string(path).unwrap().replace(',', "");
    for (name, bytes) in [
        ("JobBank", size_of::<JobBank>()),
        ("LatencyBank", size_of::<LatencyBank>()),
        ("TaskRecord", size_of::<TaskRecord>()),
        ("Cpu", size_of::<Cpu>()),
        ("LifeEvent", size_of::<LifeEvent>()),
    ] {
        assert!(text.contains(&format!("`{name}` {bytes}")), "{name} has {bytes} bytes");
    }
}

#[test]
fn the_files_that_architecture_names_are_there() {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let text = std::fs::read_to_string(root.join("docs/ARCHITECTURE.md")).unwrap();
    assert!(text.lines().count() <= 150, "it is to be read at one sitting");
    let folders = [
        "",
        "tracer-ebpf/src",
        "tracer-user",
        "tracer-user/src",
        "tracer-user/src/commands",
        "tracer-user/src/commands/agent",
        "tracer-user/src/gpu",
        "tracer-user/src/lines",
        "tracer-user/src/probes",
        "tracer-user/src/view",
        "tests",
        "tests/tests",
        "xtask/src",
    ];
    let is_path = |word: &&str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_/.-".contains(c);
        word.chars().all(plain) && (word.ends_with(".rs") || word.ends_with('/'))
    };
    let named: BTreeSet<_> = text.split('`').skip(1).step_by(2).filter(is_path).collect();
    assert!(named.len() > 50, "{named:?}");
    for path in named {
        let is_there = |folder: &&str| root.join(folder).join(path).exists();
        assert!(folders.iter().any(is_there), "there is no {path}");
    }
}

/// What docs/teaching says that a report says, by its script, stands in that report.
#[test]
fn each_quote_of_a_report_is_in_it() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/teaching");
    let text = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
    let page = text("README.md");
    let mut quotes = 0;
    for row in page.lines().filter(|line| line.starts_with("| [")) {
        let cells: Vec<_> = row.split(" | ").collect();
        let name = cells[1].split(['(', ')']).nth(1).unwrap();
        let report = text(name).split_whitespace().collect::<Vec<_>>().join(" ");
        for quote in cells[2].split('"').skip(1).step_by(2) {
            assert!(report.contains(quote), "{name} does not say {quote:?}:\n{}", text(name));
            quotes += 1;
        }
    }
    assert!(quotes >= 10, "{quotes} quotes");
}

/// What docs/teaching says that mending saved stands in both reports.
#[test]
fn what_was_saved_is_in_the_reports() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/teaching");
    let words = |name: &str| {
        let text = std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (slow, mended) = (words("look-up.txt"), words("look-up-mended.txt"));
    let page = words("README.md");
    let saved = page.split("(look-up-mended.txt) has ").nth(1).unwrap();
    let saved: Vec<_> = saved.split(". ").next().unwrap().split(", ").collect();
    assert_eq!(saved.len(), 3, "{saved:?}");
    for part in saved {
        let (after, before) = part.split_once(" in place of ").unwrap();
        let after = after.trim_start_matches("and ");
        let after = after.trim_end_matches(" opens").trim_end_matches(" read");
        assert!(mended.contains(&format!(" {after} ")), "{after:?}");
        assert!(slow.contains(&format!(" {before} ")), "{before:?}");
    }
}

/// The report that README.md shows names what makes its script slow, and nothing else.
#[test]
fn the_report_shown_names_its_causes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/report/slow.json.gz");
    let mut text = String::new();
    let file = std::fs::File::open(path).unwrap();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(file), &mut text).unwrap();
    let record = jobtrace::record::parse(text.as_bytes()).unwrap();
    let whole = jobtrace::report::Whole::of(vec![record]).unwrap();
    let rules = jobtrace::report::Report::of(&whole, true).rules();
    assert_eq!(BTreeSet::from_iter(rules), BTreeSet::from(["sync"]));
}
