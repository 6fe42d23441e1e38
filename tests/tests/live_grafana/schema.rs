//! Dashboards in Grafana's own schema.

use jobtrace_tests::rig::scripts;
use xtask::grafana;

use super::well;

#[test]
fn every_dashboard_is_in_grafanas_schema() {
    let folder = xtask::root().join(grafana::FOLDER);
    let files = grafana::all().unwrap();
    let mut files: Vec<_> = files.iter().map(|written| folder.join(&written.file)).collect();
    assert!(files.len() >= 6, "{files:?}");
    for kind in ["datasources", "dashboards"] {
        let entries = std::fs::read_dir(folder.join("provisioning").join(kind)).unwrap();
        files.extend(entries.map(|entry| entry.unwrap().path()));
    }
    eprint!("{}", well(&scripts::python("schema.py", &files).unwrap()));
}
