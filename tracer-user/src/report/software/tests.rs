use super::*;

const HOUR: u64 = 3_600_000_000_000;

fn head(job: &str, user: &str, packages: &str) -> Head {
    Head {
        manager: Some("slurm".into()),
        job: Some(job.into()),
        user: Some(user.into()),
        host: Some("n1".into()),
        begin: Some(HOUR),
        seen: Some(2 * HOUR),
        core_held_ns: Some(4 * HOUR),
        software: Some("names".into()),
        packages: Some(packages.into()),
        gpu_library: Some(0),
        ..Head::default()
    }
}

fn rows(heads: &[Head]) -> (Vec<Row>, Whole) {
    let mut whole = Software::new(By::Package);
    for head in heads {
        // As several threads do.
        let mut one = Software::new(By::Package);
        one.add(head);
        whole.merge(one);
    }
    let mut at_once = Software::new(By::Package);
    heads.iter().for_each(|head| at_once.add(head));
    let (rows, of_all) = whole.rows();
    assert_eq!((rows.clone(), of_all), at_once.rows());
    (rows, of_all)
}

fn row<'a>(rows: &'a [Row], name: &str) -> &'a Row {
    rows.iter().find(|row| row.name == name).unwrap()
}

#[test]
fn jobs_users_hours_nodes_and_versions() {
    let second_node = Head { host: Some("n2".into()), ..head("1", "ada", "numpy 2.4.6") };
    let heads = [
        head("1", "ada", "numpy 2.4.6, scipy 1.11, +3"),
        second_node,
        Head { begin: Some(9 * HOUR), seen: Some(10 * HOUR), ..head("2", "bob", "numpy 1.26.4") },
        Head { begin: Some(9 * HOUR), seen: Some(10 * HOUR), ..head("3", "bob", "numpy 2.4.6") },
        Head { software: None, packages: None, ..head("4", "cyd", "") },
        Head { software: Some("opted_out".into()), packages: None, ..head("5", "cyd", "") },
        Head { software_partial: Some(1), python_processes_most: Some(8), ..head("6", "cyd", "") },
    ];
    let (rows, whole) = rows(&heads);
    let numpy = &rows[0];
    assert_eq!((&*numpy.name, numpy.jobs, numpy.users, numpy.core_hours), ("numpy", 3, 2, 16.0));
    assert_eq!((numpy.nodes_p50, numpy.nodes_p90), (1, 2));
    let versions: Vec<_> = numpy.versions.iter().map(|of| (&*of.version, of.jobs)).collect();
    assert_eq!(versions, [("2.4.6", 2), ("1.26.4", 1)]);
    assert_eq!((numpy.jobs_earlier, numpy.jobs_later, numpy.trend()), (1, 2, Some(1.0)));
    let expected = Whole {
        jobs: 6,
        unknown: 1,
        opted_out: 1,
        counted: 0,
        more: 1,
        partly: 1,
        several_pythons: 1,
    };
    assert_eq!((whole, whole.watched()), (expected, 4));
    assert_eq!((numpy.jobs_watched, numpy.jobs_unknown), (4, 1));
    let style = crate::view::Style { width: 80, color: false, unicode: true };
    let text = table(&rows, By::Package, &whole, &style);
    for words in
        ["unknown: 1 of 6 jobs (17 %)", "1 job: asked that nothing", "not necessarily used"]
    {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn what_is_loaded_for_a_gpu_and_uses_none() {
    let gpu = |job: &str, held, busy| Head {
        gpu_library: Some(1),
        gpu_held_ns: held,
        gpu_busy_ns: busy,
        ..head(job, "ada", "torch 2.9")
    };
    let heads = [
        gpu("1", Some(10 * HOUR), Some(5 * HOUR)),
        gpu("2", Some(10 * HOUR), Some(0)),
        gpu("3", None, None),
        Head { host: Some("cpu1".into()), ..gpu("4", None, None) },
        // Nobody knows how busy that was.
        gpu("5", Some(10 * HOUR), None),
    ];
    let (rows, _) = rows(&heads);
    let torch = row(&rows, "torch");
    assert_eq!((torch.gpu_hours, torch.gpu_busy_ratio), (30.0, Some(0.25)));
    assert_eq!((torch.gpu_idle_jobs, torch.gpu_not_held_jobs), (1, 2));
    assert_eq!(torch.gpu_nodes_cpu_only_jobs, 1, "the other node has no GPU");
}

#[test]
fn what_goes_together_is_told_and_an_array_counts_once() {
    let mut heads = Vec::new();
    for at in 0..10 {
        let job = |n: u64| (100 * n + at).to_string();
        heads.push(head(&job(1), "ada", "dask, distributed, numpy"));
        heads.push(head(&job(2), "bob", "numpy, scipy"));
        heads.push(head(&job(3), "cyd", "pandas"));
    }
    // A thousand tasks of one array are one decision.
    for task in 0..1000 {
        let of_array = head(&(10_000 + task).to_string(), "dan", "dask, pandas");
        heads.push(Head { array_job: Some("10000".into()), ..of_array });
    }
    let (rows, _) = rows(&heads);
    let dask = row(&rows, "dask");
    assert_eq!(dask.jobs, 1010);
    let with: Vec<_> = dask.with.iter().map(|of| &*of.name).collect();
    assert_eq!(with, ["distributed", "numpy"]);
    // 31 groups, 11 with dask, 10 with distributed, 10 with both.
    assert!((dask.with[0].lift - 31.0 / 11.0).abs() < 1e-9, "{:?}", dask.with);
    assert!((dask.with[0].share - 10.0 / 11.0).abs() < 1e-9);
}

/// A job of which numbers alone are told says neither that something was loaded nor that it was not.
#[test]
fn jobs_without_names_are_no_evidence() {
    let named = |at: u64| {
        let packages = ["numpy, scipy", "numpy, torch"][(at % 2) as usize];
        head(&at.to_string(), "ada", packages)
    };
    let mut heads: Vec<_> = (0..10).map(named).collect();
    let (before, _) = rows(&heads);
    assert!(row(&before, "numpy").with.is_empty(), "all have it: {before:?}");
    for at in 100..200 {
        let counted =
            Head { software: Some("counts".into()), ..head(&at.to_string(), "bob", "+4") };
        heads.push(counted);
        // Nor does one that runs no Python.
        heads.push(head(&(at + 100).to_string(), "cyd", ""));
    }
    let (after, whole) = rows(&heads);
    assert_eq!((whole.jobs, whole.counted, whole.more, whole.watched()), (210, 100, 0, 110));
    let of = |rows: &[Row]| rows.iter().map(|row| (row.jobs, row.with.clone())).collect::<Vec<_>>();
    assert_eq!(of(&after), of(&before));
    assert_eq!((after[0].jobs_watched, after[0].jobs_counted), (110, 100));
    // With names on one of its nodes it is known in part.
    let second = Head { host: Some("n2".into()), ..named(0) };
    let (_, whole) = rows(&[Head { software: Some("counts".into()), ..named(0) }, second]);
    assert_eq!((whole.partly, whole.counted, whole.watched()), (1, 0, 1));
}

#[test]
fn parts_and_steps_of_a_job_are_one_and_silence_anywhere_is_silence() {
    let step = Head {
        step: Some("0".into()),
        core_held_ns: None,
        packages: Some("numpy".into()),
        ..head("1", "ada", "")
    };
    let (rows_of, whole) = rows(&[Head { packages: None, ..head("1", "ada", "") }, step.clone()]);
    assert_eq!((rows_of[0].jobs, rows_of[0].core_hours, whole.jobs), (1, 4.0, 1));
    let silent = Head { software: Some("opted_out".into()), packages: None, ..step };
    let (rows_of, whole) = rows(&[head("1", "ada", "numpy"), silent]);
    assert_eq!((rows_of.len(), whole.opted_out, whole.watched()), (0, 1, 0));
}
