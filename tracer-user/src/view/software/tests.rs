use super::*;
use crate::model::{
    group::Group,
    info::JobInfo,
    job::Job,
    seen::Means,
    software::{Level, Stack},
    totals::RunTotals,
};

fn package(name: &str, version: &str) -> Package {
    Package {
        name: name.into(),
        distribution: Some(name.into()),
        version: Some(version.into()),
        python: Some("3.11".into()),
    }
}

fn library(what: &str, name: &str, version: &str) -> Library {
    Library { name: name.into(), version: Some(version.into()), what: Some(what.into()) }
}

fn trained() -> Software {
    Software {
        since_begin: true,
        by: [Means::Open].into(),
        packages: vec![
            package("filelock", "3.1"),
            package("numpy", "2.4.6"),
            package("torch", "2.9.0+cu124"),
        ],
        libraries: vec![library("CUDA", "libcudart", "12.4.127")],
        gpu_library: true,
        ..Software::default()
    }
}

fn said(software: Software, gpu: Option<(u64, u64)>) -> String {
    let mut totals = RunTotals::new(Job::default(), JobInfo::default());
    totals.software = Some(software);
    if let Some((held_ns, busy_ns)) = gpu {
        let mut group = Group::unknown(&GPU, GPU.tags.iter().map(|_| String::new()).collect());
        group.set(Gpu::held_ns, held_ns);
        group.set(Gpu::busy_ns, busy_ns);
        totals.stats.groups.push(group);
    }
    in_words(&Facts::new(&totals, true)).unwrap_or_default()
}

#[test]
fn what_a_job_ran_in_a_sentence() {
    let text = said(trained(), Some((100, 3)));
    let expected = "Python 3.11, torch 2.9.0 (CUDA 12.4), numpy 2.4.6, 1 other package, \
                    GPU held and used 3 %";
    assert_eq!(text, expected);
    let text = said(trained(), None);
    assert!(text.ends_with("a GPU's library, but no GPU held"), "{text}");
}

#[test]
fn programs_libraries_stacks_and_what_is_missing() {
    let program = |name: &str, kind: &str, version: Option<&str>| Program {
        name: name.into(),
        version: version.map(str::to_owned),
        kind: Some(kind.into()),
        executions: 1,
    };
    let software = Software {
        since_begin: false,
        programs: vec![
            program("bash", "shell", None),
            program("gmx_mpi", "molecular_dynamics", Some("2024.1")),
        ],
        libraries: vec![
            library("OpenMPI", "libmpi", "4.1.5"),
            Library { name: "libopen-pal".into(), version: None, what: Some("OpenMPI".into()) },
            Library { name: "libexpat".into(), ..Library::default() },
        ],
        stacks: vec![Stack {
            kind: "conda".into(),
            name: Some("pangeo".into()),
            ..Stack::default()
        }],
        python_processes_most: Some(8),
        own_modules: 2,
        ..Software::default()
    };
    let expected = "gmx_mpi 2024.1, 2 modules of its own, OpenMPI 4.1.5, conda pangeo, \
                    up to 8 Python processes at once, not all of it was seen";
    assert_eq!(said(software, None), expected);
}

#[test]
fn numbers_where_there_are_no_names_and_nothing_where_nobody_watched() {
    let counts = |programs, libraries, packages| Software {
        level: Level::Counts,
        since_begin: true,
        other_programs: programs,
        other_libraries: libraries,
        unknown_packages: packages,
        ..Software::default()
    };
    assert_eq!(said(counts(3, 1, 0), None), "3 programs, 1 shared library");
    assert_eq!(said(counts(1, 12, 0), None), "1 program, 12 shared libraries");
    assert_eq!(said(Software::opted_out(Level::Names), None), "not told, as the job asked");
    let totals = RunTotals::new(Job::default(), JobInfo::default());
    assert_eq!(in_words(&Facts::new(&totals, true)), None);
}
