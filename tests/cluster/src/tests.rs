//! What a simulated cluster must be, whatever the recordings hold.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
};

use influxdb_line_protocol::parse_lines;
use jobtrace::{
    lines::{
        batch::PREAMBLE,
        profile::{BucketStyle, Profile},
        spool::name::SetName,
    },
    model::tables::{Block, CPU, Cpu, Fault, Net, SCHED, Sched},
};
use tracer_ebpf::handle::{Handle, Number};

use crate::{
    cluster::{Cluster, Progress},
    files::Files,
    kinds::{Kind, Kinds},
    plan::{Plan, SECOND, Share},
    simulate::form,
    tally::{Tally, Writer},
};

fn plan() -> Plan {
    Plan {
        nodes: 4,
        cores: 16,
        jobs: 40,
        span_s: 300,
        interval_s: 10,
        start_s: 1_767_225_600,
        seed: 3,
        cluster: "c 1".to_owned(),
    }
}

/// All lines, in the order of their writing, with the names of their files.
fn told(
    plan: &Plan,
    profile: Profile,
    style: BucketStyle,
) -> (Vec<(String, String)>, Tally, Progress) {
    let (mut cluster, mut writer) =
        (Cluster::new(plan).unwrap(), Writer::new(form(profile, style)));
    let mut told = Vec::new();
    while cluster
        .tick(|tick| {
            let mut lines = Vec::new();
            writer.write(&tick, &mut lines);
            told.push((tick.set.show(&tick.origin.host), String::from_utf8(lines)?));
            Ok(())
        })
        .unwrap()
    {}
    (told, writer.tally().clone(), cluster.progress())
}

#[test]
fn alike_arguments_give_alike_bytes_and_another_seed_others() {
    let lines = |plan: &Plan| told(plan, Profile::Histogram, BucketStyle::Le).0;
    let first = lines(&plan());
    assert_eq!(first, lines(&plan()));
    assert_ne!(first, lines(&Plan { seed: 4, ..plan() }));
}

#[test]
fn jobs_are_as_many_as_planned_and_come_in_order_within_the_time() {
    for jobs in [0, 1, 2, 1000] {
        let plan = Plan { jobs, ..plan() };
        let arrivals: Vec<_> = plan.arrivals().collect();
        assert_eq!(arrivals.len() as u64, jobs);
        assert!(arrivals.is_sorted_by_key(|job| job.arrival_ns));
        let (start, end) = (plan.start_s * SECOND, (plan.start_s + plan.span_s) * SECOND);
        assert!(arrivals.iter().all(|job| (start..end).contains(&job.arrival_ns)));
        assert!(arrivals.iter().all(|job| job.width <= plan.nodes && job.length_ns >= SECOND));
        let ids: BTreeSet<_> = arrivals.iter().map(|job| job.id).collect();
        assert_eq!(ids.len() as u64, jobs);
    }
}

#[test]
fn arrivals_are_even_over_the_time() {
    let plan = Plan { jobs: 100_000, ..plan() };
    let mut by_quarter = [0_u32; 4];
    for job in plan.arrivals() {
        by_quarter[((job.arrival_ns - plan.start_s * SECOND) / (75 * SECOND)) as usize] += 1;
    }
    assert!(by_quarter.iter().all(|count| (24_500..25_500).contains(count)), "{by_quarter:?}");
}

#[test]
fn the_official_parser_takes_every_line_and_no_point_comes_twice() {
    for (profile, style) in [
        (Profile::Summary, BucketStyle::Le),
        (Profile::Histogram, BucketStyle::Prom),
        (Profile::Full, BucketStyle::Vmrange),
    ] {
        let plan = plan();
        let (told, tally, progress) = told(&plan, profile, style);
        let names: BTreeSet<_> = told.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), told.len(), "a file's name comes twice");
        assert_eq!(told.len() as u64, plan.ticks() * u64::from(plan.nodes));
        let (mut points, mut series, mut lines, mut bytes) =
            (BTreeSet::new(), BTreeSet::new(), 0, 0);
        for (_, text) in &told {
            bytes += text.len() as u64;
            for line in parse_lines(text) {
                let line = line.unwrap();
                lines += 1;
                let stamp = line.timestamp.unwrap() as u64;
                assert_eq!(stamp % (plan.interval_s * SECOND), 0, "not on the grid: {line}");
                let end = plan.start_s + plan.span_s;
                assert!((plan.start_s * SECOND..=end * SECOND).contains(&stamp));
                let key = line.series.to_string();
                assert!(points.insert((key.clone(), stamp)), "twice: {line}");
                series.insert(key);
            }
        }
        assert_eq!((tally.all().lines, tally.all().bytes), (lines, bytes));
        assert_eq!(tally.job_series + tally.node_series, series.len() as u64);
        assert!(progress.begun >= 20 && progress.ended >= 10, "{progress:?}");
        assert_eq!(tally.of_jobs.contains_key("job_hist"), profile != Profile::Summary);
    }
}

#[test]
fn every_job_is_told_of_on_all_its_nodes_while_it_holds_no_more_than_they_have() {
    let plan = plan();
    let mut cluster = Cluster::new(&plan).unwrap();
    let jobs: BTreeMap<_, _> = plan.arrivals().map(|job| (job.id.to_string(), job)).collect();
    let mut nodes_of: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut ends: BTreeMap<String, u32> = BTreeMap::new();
    while cluster
        .tick(|tick| {
            let mut held = 0;
            for stats in tick.pending.jobs.iter().filter(|stats| stats.job.job != "_system") {
                let job = &jobs[&stats.job.job];
                assert_eq!(stats.job.user, job.user());
                assert_eq!(stats.job.manager, "slurm");
                held += job.share.cores(plan.cores);
                let cores = stats.group(&CPU).unwrap().number(Cpu::cores_held);
                assert_eq!(cores, Some(u64::from(job.share.cores(plan.cores)) * 1000));
                let host = tick.origin.host.clone();
                nodes_of.entry(stats.job.job.clone()).or_default().insert(host);
            }
            assert!(held <= plan.cores, "{held} cores are held");
            for ended in &tick.ended {
                *ends.entry(ended.job.clone()).or_default() += 1;
            }
            Ok(())
        })
        .unwrap()
    {}
    for (id, nodes) in &nodes_of {
        assert_eq!(nodes.len() as u32, jobs[id].width, "job {id}");
    }
    for (id, times) in &ends {
        assert_eq!(*times, jobs[id].width, "job {id} ends on each of its nodes");
    }
    assert_eq!(cluster.progress().begun, nodes_of.len() as u64);
    assert_eq!(cluster.progress().ended, ends.len() as u64);
}

#[test]
fn a_quarter_of_a_node_does_a_quarter_of_its_work() {
    let kinds = Kinds::load(10, 64).unwrap();
    let on_cpu = |share| -> u64 {
        let cycle = kinds.of(Kind::Compute, share);
        let sched = |tick| cycle.at(0, tick).iter().find(|g| g.is(&SCHED)).cloned();
        (0..50).map(|tick| sched(tick).unwrap().number(Sched::on_cpu_ns).unwrap()).sum()
    };
    let ratio = on_cpu(Share::Whole) as f64 / on_cpu(Share::Quarter) as f64;
    assert!((3.6..4.4).contains(&ratio), "{ratio}");
    // Two recorded CPUs, busy most of the time, for each two cores: no more than the cores have.
    let seconds = on_cpu(Share::Whole) as f64 / SECOND as f64;
    assert!((0.3 * 64.0 * 500.0..=1.02 * 64.0 * 500.0).contains(&seconds), "{seconds}");
}

#[test]
fn files_are_a_spools_own_and_hold_every_line_once() {
    let plan = Plan { span_s: 60, ..plan() };
    let scratch = tempfile::tempdir().unwrap();
    for ticks in [1, 4] {
        let dir = scratch.path().join(ticks.to_string());
        let mut files = Files::create(&dir, ticks).unwrap();
        let (mut cluster, mut writer) =
            (Cluster::new(&plan).unwrap(), Writer::new(form(Profile::Summary, BucketStyle::Le)));
        let mut sent = BTreeMap::new();
        while cluster
            .tick(|tick| {
                let (host, mut lines) = (tick.origin.host.clone(), Vec::new());
                writer.write(&tick, &mut lines);
                sent.entry(host.clone()).or_insert_with(Vec::new).extend(&lines);
                files.add(&host, tick.set, &lines)
            })
            .unwrap()
        {}
        files.finish().unwrap();
        // By name: the order of a node's names is the order of writing.
        let mut names: Vec<_> = std::fs::read_dir(dir.join("outbox"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names.len() as u64, u64::from(plan.nodes) * plan.ticks().div_ceil(ticks));
        let mut found = BTreeMap::new();
        for name in names {
            let host = name.split('-').next().unwrap().to_owned();
            assert!(SetName::parse(&host, &name).is_some(), "{name}");
            let mut text = String::new();
            let packed = std::fs::File::open(dir.join("outbox").join(&name)).unwrap();
            flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
            let lines = text.strip_prefix(PREAMBLE).unwrap().as_bytes().to_vec();
            found.entry(host).or_insert_with(Vec::new).extend(lines);
        }
        assert_eq!(found, sent);
        let refused = Files::create(&dir, ticks).err().unwrap().to_string();
        assert!(refused.contains("is not empty: name another folder"), "{refused}");
    }
}

#[test]
fn recorded_jobs_do_what_they_are_named_for() {
    let kinds = Kinds::load(1, 2).unwrap();
    // Of fifteen seconds on two CPUs.
    let sum = |kind, field: Handle<Number>| -> u64 {
        let all = (0..15).flat_map(|tick| kinds.of(kind, Share::Whole).at(0, tick));
        all.filter(|group| group.is(field.measurement())).filter_map(|g| g.number(field)).sum()
    };
    let on_cpu_s = |kind| sum(kind, Sched::on_cpu_ns) as f64 / SECOND as f64;
    for (what, value, least) in [
        ("seconds of compute on CPU", on_cpu_s(Kind::Compute), 5.0),
        ("bytes that compute sends", sum(Kind::Compute, Net::sent_bytes) as f64, 1e6),
        ("faults of memory", sum(Kind::Memory, Fault::minor) as f64, 1e4),
        ("requests of disk", sum(Kind::Disk, Block::ops) as f64, 100.0),
        ("processes of forks", sum(Kind::Forks, Sched::forks) as f64, 100.0),
        ("seconds of idle asleep", 15.0 - on_cpu_s(Kind::Idle), 10.0),
    ] {
        assert!(value >= least, "{what}: {value}");
    }
}
