use std::path::PathBuf;

use super::*;
use crate::record::head::Head;

const S: u64 = 1_000_000_000;

/// A job that has run for `seconds`, `busy` cores of its 4 all the time.
fn head(job: &str, seconds: u64, busy: u64) -> Head {
    Head {
        job: Some(job.into()),
        manager: Some("slurm".into()),
        user: Some("ada".into()),
        name: Some("md".into()),
        host: Some("n1".into()),
        begin: Some(S),
        start: Some(S),
        seen: Some((1 + seconds) * S),
        elapsed_ns: Some(seconds * S),
        on_cpu_ns: Some(busy * seconds * S),
        run_queue_wait_ns: Some(0),
        blocked_ns: Some(seconds * S),
        millicores_held: Some(4000),
        memory_used_peak_bytes: Some(1 << 30),
        disk_bytes: Some(seconds << 20),
        net_bytes: Some(0),
        ..Head::default()
    }
}

fn runs(heads: &[Head]) -> Vec<Run> {
    heads.iter().map(|head| Run { parts: vec![(PathBuf::new(), head.clone())] }).collect()
}

fn table(jobs: &Jobs, sort: Sort, width: usize) -> Vec<String> {
    let style = Style { width, color: false, unicode: true };
    lines(&jobs.sorted(sort), &style).iter().map(|line| line.render(&style)).collect()
}

#[test]
fn at_first_it_is_the_mean_and_then_what_it_does_now() {
    let mut jobs = Jobs::default();
    jobs.take(&runs(&[head("7", 10, 3)]));
    let expected = [
        "JOB  USER  CORES  ON CPU  WAITING  BLOCKED  MEMORY     DISK    TIME  NAME",
        "7    ada     3/4    75 %      0 %     25 %   1 GiB  1 MiB/s  10.0 s  md",
    ];
    assert_eq!(table(&jobs, Sort::Cpu, 100), expected);
    // Ten seconds later it has been blocked all the time.
    let mut later = head("7", 20, 3);
    later.on_cpu_ns = head("7", 10, 3).on_cpu_ns;
    for _ in 0..2 {
        jobs.take(&runs(&[later.clone()]));
        let now = &table(&jobs, Sort::Cpu, 100)[1];
        let expected = "7    ada     0/4     0 %      0 %    100 %   1 GiB  1 MiB/s  20.0 s  md";
        assert_eq!(now, expected, "a list of the same reading tells the same");
    }
    // Another agent counts from anew.
    jobs.take(&runs(&[head("7", 5, 2)]));
    assert!(table(&jobs, Sort::Cpu, 100)[1].contains("2/4    67 %"), "{jobs:?}");
}

#[test]
fn what_ended_is_not_shown_and_what_is_unknown_is_no_zero() {
    let mut ended = head("7", 10, 3);
    ended.end = Some(9 * S);
    let mut unknown = head("8", 10, 3);
    (unknown.blocked_ns, unknown.millicores_held) = (None, None);
    let mut jobs = Jobs::default();
    jobs.take(&runs(&[ended, unknown]));
    let shown = table(&jobs, Sort::Cpu, 100);
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(shown[1].contains("3/?   100 %      0 %  unknown"), "{shown:?}");
}

#[test]
fn each_order_has_its_own_first() {
    let mut jobs = Jobs::default();
    let change = |job: &str, change: fn(&mut Head)| {
        let mut head = head(job, 10, 1);
        change(&mut head);
        head
    };
    let all = [
        change("cpu", |head| head.on_cpu_ns = Some(40 * S)),
        change("waiting", |head| head.run_queue_wait_ns = Some(S)),
        change("blocked", |head| head.blocked_ns = Some(11 * S)),
        change("memory", |head| head.memory_used_peak_bytes = Some(2 << 30)),
        change("disk", |head| head.disk_bytes = Some(1 << 40)),
        change("net", |head| head.net_bytes = Some(1)),
        change("gpu", |head| (head.gpu_busy_ns, head.gpu_held_ns) = (Some(5 * S), Some(20 * S))),
        // By its rates it is the last of all.
        change("time", |head| head.elapsed_ns = Some(11 * S)),
    ];
    jobs.take(&runs(&all));
    for (sort, head) in Sort::value_variants().iter().zip(&all) {
        let first = &jobs.sorted(*sort)[0].row.job;
        assert_eq!(Some(first), head.job.as_ref(), "{sort:?}");
    }
    assert!(
        table(&jobs, Sort::Gpu, 200)[1].contains("  0.50/2  "),
        "{:?}",
        table(&jobs, Sort::Gpu, 200)
    );
}

#[test]
fn columns_give_way_where_there_is_no_room() {
    let mut jobs = Jobs::default();
    let mut long = head("1234567", 100_000, 3);
    long.name = Some("a very long name of a job\x1b[31m".into());
    jobs.take(&runs(&[long, head("8", 10, 1)]));
    for (width, heads) in [
        (100, "JOB      USER  CORES  ON CPU  WAITING  BLOCKED  MEMORY     DISK    TIME  NAME"),
        (80, "JOB      USER  CORES  ON CPU  WAITING  BLOCKED  MEMORY     DISK    TIME"),
        (40, "JOB      CORES  ON CPU  WAITING  BLOCKED"),
        (30, "JOB      ON CPU  BLOCKED"),
        (10, "JOB      …"),
    ] {
        let shown = table(&jobs, Sort::Cpu, width);
        assert_eq!(shown[0], heads, "{width}");
        assert!(shown.iter().all(|line| text::width(line) <= width && !line.contains('\x1b')));
    }
}
