//! systemd: boot, scope, service, end.

use std::{fs, path::Path};

use jobtrace_tests::rig::{cgroups, systemd::Systemd, wait_for};

use super::MOMENT;

#[test]
fn systemd_boots_and_makes_scopes() {
    let systemd = Systemd::start().unwrap();
    let cgroup = systemd.cgroup().to_owned();
    let version = systemd.run(&["systemctl", "--version"]).unwrap();
    assert!(String::from_utf8_lossy(&version.stdout).starts_with("systemd 2"), "{version:?}");
    let init = fs::read_to_string(systemd.path("/proc/1/comm")).unwrap();
    assert_eq!(init, "systemd\n");

    let words = ["systemd-run", "--scope", "--quiet", "--unit=rig", "cat", "/proc/self/cgroup"];
    let output = systemd.run(&words).unwrap();
    let inside = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(inside.lines().any(|line| line == "0::/system.slice/rig.scope"), "{inside}");

    let unit = "[Service]\nExecStart=/usr/local/bin/rest\n";
    systemd.install("/usr/local/bin/rest", b"#!/bin/sh\nexec sleep 603\n", 0o755).unwrap();
    systemd.install("/etc/systemd/system/rest.service", unit.as_bytes(), 0o644).unwrap();
    systemd.run(&["systemctl", "daemon-reload"]).unwrap();
    systemd.run(&["systemctl", "start", "rest.service"]).unwrap();
    let name = format!("/{}/system.slice/rest.service", cgroup.file_name().unwrap().display());
    let found = wait_for("the service", MOMENT, || {
        let found = cgroups::processes(|path| path == name);
        (!found.is_empty()).then_some(found)
    });
    let pid = found.unwrap()[0].0;
    drop(systemd);
    assert!(!cgroup.exists());
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}
