//! What to ask for next time: for the whole run and the fullest node, and of jobs that ended by themselves alone.

use jobtrace::{
    base::units::bytes,
    model::{
        group::Group,
        info::Exit,
        parts::Part,
        tables::{Cpu, Fact, Fault, GPU, Gpu, Memory, Sched, fact},
    },
    record::{Record, head::Head, timeline::Timeline},
    report::{Report, Whole, render},
    view::Style,
};

use crate::{
    fixtures,
    reports::slurm,
    rules::{number, set},
};

const S: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * S;
const GIB: u64 = 1 << 30;
const START: &Fact = fact("start");
const END: &Fact = fact("end");
const REASON: &Fact = fact("end_reason");

fn report(records: Vec<Record>) -> Report {
    Report::of(&Whole::of(records).unwrap(), false)
}

/// What is asked for next time, without what it costs.
fn next(records: Vec<Record>) -> Vec<String> {
    let next = report(records).next.into_iter().map(|next| next.what);
    next.filter(|what| !what.ends_with("kSU")).collect()
}

/// Every option in the report.
fn options(records: Vec<Record>) -> Vec<String> {
    let report = report(records);
    let next = report.next.iter().map(|next| next.what.clone());
    report.advice.iter().filter_map(|advice| advice.option.clone()).chain(next).collect()
}

fn has(options: &[String], option: &str) -> bool {
    options.iter().any(|one| one.starts_with(option))
}

/// A serial job of 83 minutes on 8 cores.
fn job() -> Record {
    slurm(fixtures::serial(), 60)
}

/// The same on a node, with its peak of cores in thousandths.
fn node(host: &str, nodes: u64, millicores: u64) -> Record {
    let mut record = job();
    record.hosts = vec![host.into()];
    record.facts.set(const { fact("node_count") }, nodes);
    let elapsed_ns = record.totals.elapsed_ns;
    set(&mut record, Cpu::cores_held, 32_000);
    set(&mut record, Cpu::held_ns, 32 * elapsed_ns);
    set(&mut record, Sched::on_cpu_ns, elapsed_ns / 1000 * millicores);
    record.totals.peaks.millicores = millicores;
    record
}

fn with_gpus(mut record: Record, gpus: u64, used: u64) -> Record {
    let held_ns = record.totals.elapsed_ns;
    let gpu = |index: u64| {
        let mut gpu = Group::unknown(&GPU, vec![String::new(); GPU.tags.len()]);
        gpu.tags[0] = index.to_string();
        gpu.set(Gpu::held_ns, held_ns);
        gpu.set(Gpu::used_ns, if index < used { held_ns } else { 0 });
        gpu
    };
    record.totals.stats.groups.extend((0..gpus).map(gpu));
    record
}

#[test]
fn time_is_asked_for_the_whole_run_not_for_what_was_counted() {
    let took = |change: &dyn Fn(&mut Record)| {
        let mut job = job();
        change(&mut job);
        next(vec![job]).into_iter().find(|what| what.starts_with("--time")).unwrap()
    };
    assert_eq!(took(&|_| {}), "--time=1:45:00", "1.2 times 83 minutes");
    // The agent came ten hours after the job.
    let late = |job: &mut Record| {
        let start_ns = job.facts.number(START).unwrap();
        job.facts.set(const { fact("counted_from") }, start_ns);
        job.facts.set(START, start_ns - 10 * HOUR);
    };
    assert_eq!(took(&late), "--time=14:00:00");
    // It was stopped for as long, and the job went on.
    let mut first = job();
    let start_ns = first.facts.number(START).unwrap();
    let mut second = job();
    let begin_ns = start_ns + 10 * HOUR;
    second.timeline = Timeline::new(begin_ns);
    second.timeline.add(second.totals.elapsed_ns, &[]);
    second.facts.set(END, begin_ns + second.totals.elapsed_ns);
    first.facts.remove(END);
    let two = next(vec![first, second]);
    assert!(two.contains(&"--time=14:00:00".to_owned()), "{two:?}");
    // All was counted: a clock that was set is no run time.
    let stepped = |job: &mut Record| {
        let end_ns = job.facts.number(END).unwrap();
        job.facts.set(END, end_ns + 10 * HOUR);
    };
    assert_eq!(took(&stepped), "--time=1:45:00");
}

#[test]
fn its_share_of_the_time_asked_is_the_whole_runs() {
    let mut job = job();
    let start_ns = job.facts.number(START).unwrap();
    job.facts.set(const { fact("counted_from") }, start_ns);
    job.facts.set(START, start_ns - 20 * HOUR);
    job.facts.set(const { fact("time_limit_end") }, start_ns + 4 * HOUR);
    let report = report(vec![job]);
    let time = report.used.iter().find(|bar| bar.name == "Time").unwrap();
    assert!(time.share.is_some_and(|share| share > 0.8), "{time:?}");
    assert!(!report.rules().contains(&"time_unused"), "{:?}", report.rules());
}

#[test]
fn cores_are_those_of_the_fullest_node() {
    let nodes = |busiest: u64| {
        let of = |n: u64| node(&format!("n{n:02}"), 64, if n == 5 { busiest } else { 8_000 });
        (0..64).map(of).collect::<Vec<_>>()
    };
    assert!(has(&next(nodes(8_000)), "--cpus-per-task=8"));
    assert!(has(&next(nodes(30_000)), "--cpus-per-task=30"));
    assert!(!has(&next(nodes(32_000)), "--cpus-per-task"), "nothing to give back");
    let tasks = |count: u64| {
        let mut all = nodes(28_000);
        all.iter_mut().for_each(|node| node.facts.set(const { fact("task_count") }, count));
        next(all)
    };
    assert!(has(&tasks(4 * 64), "--cpus-per-task=7"), "four on a node");
}

#[test]
fn cores_are_those_of_the_busiest_task_where_tasks_are_known() {
    let mut job = node("n1", 1, 8_000);
    job.facts.set(const { fact("task_count") }, 4);
    assert!(has(&next(vec![job.clone()]), "--cpus-per-task=2"));
    let begin = job.facts.number(START).unwrap();
    let part = |task: &str, cores: u64| Part {
        step: "0".into(),
        task: task.into(),
        begin,
        end: Some(begin + 1_000 * S),
        on_cpu_ns: Some(1_000 * S * cores),
        ..Part::default()
    };
    job.totals.parts.listed = vec![part("0", 5), part("1", 1), part("2", 1), part("3", 1)];
    assert!(has(&next(vec![job]), "--cpus-per-task=5"));
}

#[test]
fn gpus_are_those_of_the_fullest_node() {
    let nodes = |used: [u64; 2]| {
        let of = |(n, used): (usize, u64)| with_gpus(node(&format!("g{n}"), 2, 32_000), 4, used);
        next(used.into_iter().enumerate().map(of).collect())
    };
    assert!(has(&nodes([2, 1]), "--gpus-per-node=2"));
    assert!(!has(&nodes([4, 3]), "--gpus-per-node"), "one node needs all");
    assert!(!has(&nodes([0, 0]), "--gpus-per-node"), "none at all is no number");
}

#[test]
fn how_many_copies_fit_is_not_told_where_gpus_would_run_out_first() {
    assert!(next(vec![job()]).iter().any(|what| what.ends_with("copies fit on a node")));
    let with = next(vec![with_gpus(job(), 2, 2)]);
    assert!(!with.iter().any(|what| what.contains("copies")), "{with:?}");
}

/// A run of a second has no reading between its ends.
#[test]
fn memory_that_nobody_looked_at_has_no_average() {
    let words = |byte_s| {
        let mut job = job();
        set(&mut job, Memory::used_byte_s, byte_s);
        report(vec![job]).used.into_iter().find(|bar| bar.name == "Memory").unwrap().words
    };
    assert!(words(5_000 * GIB).contains(" on average"), "{}", words(5_000 * GIB));
    assert!(!words(0).contains(" on average"), "{}", words(0));
}

#[test]
fn as_many_copies_fit_as_have_the_memory_that_it_is_told_to_ask_for() {
    let mut job = killed_at(100);
    job.facts.remove(REASON);
    job.totals.exit = Some(Exit { code: Some(0), signal: None });
    job.facts.set(const { fact("node_memory_bytes") }, 64 * GIB);
    job.facts.set(const { fact("node_cores") }, 128);
    let next = report(vec![job]).next;
    let said: Vec<_> = next.iter().map(|next| format!("{}: {}", next.what, next.why)).collect();
    assert!(said[0].starts_with("--mem=24G"), "{said:?}");
    let copies = "2 copies fit on a node: 8 cores and 24 GiB each; memory runs out first";
    assert!(said.iter().any(|said| said == copies), "{said:?}");
}

#[test]
fn what_did_not_end_by_itself_teaches_only_what_it_lacked() {
    let said = |change: &dyn Fn(&mut Record)| {
        let mut job = with_gpus(job(), 2, 1);
        change(&mut job);
        let silence = "it was ended or failed, so what it needs to the end is not known";
        let is_said = report(vec![job.clone()]).unseen.iter().any(|said| said == silence);
        let options = options(vec![job]);
        (options.into_iter().filter(|what| !what.ends_with("kSU")).collect::<Vec<_>>(), is_said)
    };
    let reason = |word: &'static str| move |job: &mut Record| job.facts.set_text(REASON, word);
    let exit = |code, signal| move |job: &mut Record| job.totals.exit = Some(Exit { code, signal });
    for (what, change) in [
        ("exit status 1", &exit(Some(1), None) as &dyn Fn(&mut Record)),
        ("SIGSEGV", &exit(None, Some(11))),
        ("an exit status of 143", &|job| job.facts.set(const { fact("exit") }, 143)),
        ("cancelled", &reason("cancelled")),
        ("preempted", &reason("preempted")),
        ("node_failed", &reason("node_failed")),
        ("out of memory, nobody knows with how much", &reason("out_of_memory")),
        ("a task killed for memory, and nobody knows more", &|job| set(job, Fault::oom_kills, 1)),
        ("still running", &|job| job.facts.remove(END)),
    ] {
        let (options, is_said) = said(change);
        assert_eq!(options, Vec::<String>::new(), "{what}");
        assert_eq!(is_said, what != "still running", "{what}");
    }
    let (itself, is_said) = said(&exit(Some(0), None));
    assert!(!is_said);
    for option in ["--mem=3G", "--cpus-per-task=1", "--time=1:45:00", "--gpus-per-node=1"] {
        assert!(has(&itself, option), "{option}: {itself:?}");
    }
    let (limit, _) = said(&reason("time_limit"));
    assert_eq!(limit, ["--time=36:00:00", "--time=36:00:00"], "the finding, and next time");
}

/// A job that was killed for memory at this part of its limit.
fn killed_at(percent: u64) -> Record {
    let mut job = slurm(fixtures::killed(), 1);
    job.totals.elapsed_ns = HOUR;
    job.facts.set_text(REASON, "out_of_memory");
    let limit = number(&job, Memory::limit_bytes);
    set(&mut job, Memory::peak_bytes, limit / 100 * percent + 100);
    set(&mut job, Fault::oom_kills, 1);
    job
}

#[test]
fn killed_for_memory_below_its_limit_it_shared_that_or_the_node_with_others() {
    let told = |percent, ends: bool| {
        let mut job = killed_at(percent);
        if !ends {
            job.facts.remove(REASON);
        }
        let report = report(vec![job]);
        let advice = report.advice.iter().find(|advice| advice.rule == "out_of_memory").unwrap();
        (advice.text.clone(), advice.option.is_some())
    };
    let others = "others on the node, or under the same limit, had the rest";
    // At more than all of it the limit was lowered later.
    for percent in [160, 96] {
        let (text, is_asked) = told(percent, true);
        assert!(text.contains("it needs more than the") && is_asked, "{text}");
        assert!(!text.contains(others), "{text}");
    }
    // `run` itself may be under the same limit, or a step have a lower one.
    for percent in [93, 76, 74, 40] {
        let (text, is_asked) = told(percent, false);
        assert!(text.contains(others) && !text.contains("needs more"), "{text}");
        assert!(text.contains(&format!("it had {percent} %")), "{text}");
        assert_eq!(is_asked, percent > 75, "more is worth a try where little was left: {text}");
        // It ended before what it took last could be read.
        let (text, is_asked) = told(percent, true);
        let last = format!("at most {percent} % of the 16 GiB allowed was seen");
        assert!(text.contains(&last) && text.contains("it took the rest at its end"), "{text}");
        assert_eq!(is_asked, percent > 75);
    }
}

#[test]
fn killed_for_memory_at_its_limit_it_needed_all_of_it_whatever_readings_saw() {
    let shown = |percent, cached| {
        let mut job = killed_at(percent);
        let limit = number(&job, Memory::limit_bytes);
        set(&mut job, Memory::used_peak_bytes, limit / 100 * 3);
        set(&mut job, Memory::cache_peak_bytes, limit / 100 * cached);
        let bytes = [limit / 100 * percent + 100, limit / 100 * 3].map(bytes);
        let text = render(&report(vec![job]), &Style { width: 160, color: false, unicode: false });
        (text, bytes.map(|bytes| format!("at least {bytes} needed at its peak")))
    };
    let (text, [all, seen]) = shown(99, 0);
    assert!(text.contains(&all) && !text.contains(&seen), "{text}");
    // Others had the rest; file cache had, and a step's own limit or the node was short.
    for (percent, cached) in [(60, 0), (99, 95)] {
        let (text, [all, seen]) = shown(percent, cached);
        assert!(text.contains(&seen) && !text.contains(&all), "{text}");
    }
}

#[test]
fn pbs_has_one_select_for_all_that_a_node_gives() {
    let nodes = ["g0", "g1"].map(|host| {
        let mut node = with_gpus(node(host, 2, 1_000), 4, 1);
        node.totals.stats.job.manager = "pbs".into();
        node
    });
    let report = report(nodes.to_vec());
    let what: Vec<_> = report.next.iter().map(|next| next.what.as_str()).collect();
    assert_eq!(what[0], "-l select=...:mem=3gb:ncpus=1:ngpus=1", "{what:?}");
    assert_eq!(what[1], "-l walltime=1:45:00", "{what:?}");
    assert_eq!(what.iter().filter(|what| what.contains("select")).count(), 1, "{what:?}");
    let text = render(&report, &Style { width: 100, color: false, unicode: false });
    assert!(!text.contains("select=1"), "{text}");
}

#[test]
fn no_more_memory_is_asked_for_than_a_node_has() {
    let of = |node_bytes: u64, used: u64| {
        let mut job = job();
        job.facts.set(const { fact("node_memory_bytes") }, node_bytes);
        set(&mut job, Memory::used_peak_bytes, used);
        let next = report(vec![job]).next;
        next.into_iter().find(|next| next.what.starts_with("--mem")).map(|n| (n.what, n.why))
    };
    let (what, why) = of(256 * GIB, 7 * GIB).unwrap();
    assert_eq!((&*what, &*why), ("--mem=9G", "1.2 times the 7 GiB that it needed"));
    let (what, why) = of(8 * GIB + 4096, 7 * GIB).unwrap();
    assert_eq!(
        (&*what, &*why),
        ("--mem=8G", "it needed 7 GiB, and the node has no more (--mem=0 asks for all of it)")
    );
    assert_eq!(of(8 * GIB, 9 * GIB), None);
    let (what, why) = of(256 * GIB, GIB >> 10).unwrap();
    let little = "it needed 1 MiB, and less than this is not worth asking for";
    assert_eq!((&*what, &*why), ("--mem=128M", little));
}

/// What is charged between two readings is in the kernel's peak alone: it may have been needed, and may have been the
/// cache of a file that is gone.
#[test]
fn one_number_is_what_it_needs_wherever_that_is_told() {
    let told = |cached: u64| {
        let mut job = job();
        for (fact, number) in [
            (const { fact("node_memory_bytes") }, 256 * GIB),
            (const { fact("memory_per_node_bytes") }, 48 * GIB),
            (const { fact("node_cores") }, 64),
        ] {
            job.facts.set(fact, number);
        }
        set(&mut job, Memory::limit_bytes, 48 * GIB);
        set(&mut job, Memory::peak_bytes, 40 * GIB);
        set(&mut job, Memory::used_peak_bytes, 10 * GIB);
        set(&mut job, Memory::cache_peak_bytes, cached * GIB);
        let head = Head::from(&job);
        let report = report(vec![job]);
        let next = report.next.iter().map(|next| format!("{}: {}", next.what, next.why));
        let next: Vec<_> = next.filter(|next| next.contains("GiB")).collect();
        let memory = report.used.into_iter().find(|bar| bar.name == "Memory").unwrap().words;
        (next.join("\n"), memory, (head.memory_used_peak_bytes, head.memory_used_most_bytes))
    };
    let (next, memory, listed) = told(1);
    let expected = "--mem=48G: it was charged 40 GiB at most, and the 48 GiB allowed were enough\n\
                    5 copies fit on a node: 1 core and 48 GiB each; memory runs out first";
    assert_eq!(next, expected);
    assert!(memory.starts_with("up to 40 GiB needed at its peak of 48 GiB allowed"), "{memory}");
    assert!(memory.ends_with("; at most 10 GiB at any reading"), "{memory}");
    assert_eq!(listed, (Some(10 * GIB), Some(40 * GIB)));
    let (next, memory, listed) = told(30);
    let expected = "--mem=12G: 1.2 times the 10 GiB that it needed\n\
                    21 copies fit on a node: 1 core and 12 GiB each; memory runs out first";
    assert_eq!(next, expected);
    assert!(memory.starts_with("10 GiB needed at its peak of 48 GiB allowed"), "{memory}");
    assert!(memory.ends_with("; with file cache 40 GiB"), "{memory}");
    assert_eq!(listed, (Some(10 * GIB), None));
}
