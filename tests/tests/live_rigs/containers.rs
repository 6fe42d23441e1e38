//! Containers: their cgroups' paths, and work in them.

use std::path::Path;

use jobtrace::cgroup::hierarchies::Hierarchies;
use jobtrace_tests::rig::{
    cgroups,
    container::{Container, Kind},
    workload::{self, Amounts},
};

use super::{MOMENT, path};

#[test]
fn containers_have_the_paths_of_their_engines() {
    for kind in [Kind::Docker, Kind::Podman, Kind::Kubernetes] {
        let container = Container::start(kind, &["sleep", "604"], &[]).unwrap();
        let places = cgroups::places_of(container.pid());
        assert_eq!(container.cgroup(), kind.path(container.id()));
        // v1 where it is, else v2; in both where both are.
        let found = Hierarchies::read().unwrap();
        for controller in [""].into_iter().chain(["memory", "freezer"]) {
            let mounted = if controller.is_empty() {
                found.v2.is_some()
            } else {
                found.v1(controller).is_some()
            };
            let expected = if mounted { container.cgroup() } else { "" };
            assert_eq!(path(&places, controller), expected, "{kind:?} {controller}: {places:?}");
        }
        let (pid, cgroup) = (container.pid(), container.cgroup().to_owned());
        drop(container);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        for mount in cgroups::mounts().unwrap() {
            assert!(!mount.join(cgroup.trim_start_matches('/')).exists());
        }
    }
}

#[test]
fn a_workload_runs_in_a_container() {
    let program = workload::workload("amounts").unwrap();
    let folder = program.parent().unwrap();
    let words = Amounts { read_mib: 0, cpu_ms: 50, pages: 500 }.words(Path::new("/none")).unwrap();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut container = Container::start(Kind::Docker, &words, &[folder]).unwrap();
    let report = workload::report(&container.wait(MOMENT).unwrap()).unwrap();
    assert!((50_000_000..1_000_000_000).contains(&report.children.on_cpu_ns), "{report:?}");
}
