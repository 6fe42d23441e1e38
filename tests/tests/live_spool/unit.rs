//! `jobtrace-push` as packages ship it, under a real systemd: a user without rights takes the agent's
//! files, into a real InfluxDB.

use std::fs;

use jobtrace_tests::{
    daemon::files,
    rig::{PATIENCE, influx::Influx, systemd::Systemd, wait_for},
    traced::program,
};

const UNIT: &str = include_str!("../../../xtask/dist/jobtrace-push.service");
const USERS: &str = include_str!("../../../xtask/dist/jobtrace.sysusers");
const FOLDERS: &str = include_str!("../../../xtask/dist/jobtrace.tmpfiles");
const OUTBOX: &str = "/var/spool/jobtrace/outbox";
/// What systemd-analyze gives at most: 10 is no protection at all.
const EXPOSURE: f64 = 1.4;

/// As the agent's user, whose file the pusher may read and take but not write.
fn write(systemd: &Systemd, name: &str, text: &str) {
    let tmp = format!("/var/spool/jobtrace/tmp/{name}");
    systemd.install(&tmp, text.as_bytes(), 0o640).unwrap();
    systemd.run(&["chown", "jobtrace:jobtrace", &tmp]).unwrap();
    systemd.run(&["mv", &tmp, &format!("{OUTBOX}/{name}")]).unwrap();
}

#[test]
fn the_hardened_unit_sends_what_the_agent_writes() {
    let systemd = Systemd::start().unwrap();
    systemd.join_network().unwrap();
    let influx = Influx::start().unwrap();
    influx.create_db("jobtrace").unwrap();
    let install = |path: &str, bytes: &[u8], mode| systemd.install(path, bytes, mode).unwrap();
    install("/usr/bin/jobtrace", &fs::read(program().unwrap()).unwrap(), 0o755);
    install("/usr/lib/systemd/system/jobtrace-push.service", UNIT.as_bytes(), 0o644);
    install("/usr/lib/sysusers.d/jobtrace.conf", USERS.as_bytes(), 0o644);
    install("/usr/lib/tmpfiles.d/jobtrace.conf", FOLDERS.as_bytes(), 0o644);
    let configuration = format!("url = {:?}\nevery = \"1s\"\n", influx.url());
    install("/etc/jobtrace/push.toml", configuration.as_bytes(), 0o644);
    let run = |words: &[&str]| {
        let output = systemd.run(words).unwrap_or_else(|error| {
            let journal =
                systemd.command(&["journalctl", "--no-pager", "--unit=jobtrace-push"]).output();
            panic!("{error:#}: {}", String::from_utf8_lossy(&journal.unwrap().stdout))
        });
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run(&["systemd-sysusers", "jobtrace.conf"]);
    // The folder of pinned maps needs bpffs, which is not there.
    systemd.command(&["systemd-tmpfiles", "--create", "jobtrace.conf"]).output().unwrap();
    run(&["systemctl", "daemon-reload"]);
    let stamp = 1_700_000_000_000_000_000_u64;
    write(&systemd, "a.lp", &format!("job_cpu,host=n1 tasks=4i {stamp}\n"));
    run(&["systemctl", "start", "jobtrace-push"]);
    write(&systemd, "b.lp", &format!("job_cpu,host=n2 tasks=5i {stamp}\n"));
    write(&systemd, "c.lp", &format!("job_cpu,host=n2 tasks=0.5 {stamp}\n"));
    let outbox = systemd.path(OUTBOX);
    wait_for("an empty outbox", PATIENCE, || {
        (fs::read_dir(&outbox).unwrap().count() == 0).then_some(())
    })
    .unwrap_or_else(|error| {
        panic!("{error:#}: {}", run(&["journalctl", "--no-pager", "--unit=jobtrace-push"]))
    });
    let rows = influx.query("jobtrace", "SELECT sum(tasks) FROM job_cpu").unwrap();
    assert_eq!(rows[0]["sum"].as_u64(), Some(9));
    let failed = systemd.path("/var/spool/jobtrace/failed");
    let reason = fs::read_to_string(failed.join("c.lp.reason")).unwrap();
    assert!(failed.join("c.lp").exists() && reason.contains("field type conflict"), "{reason}");
    let property =
        |name| run(&["systemctl", "show", "--value", "--property", name, "jobtrace-push"]);
    let text = property("StatusText");
    assert!(text.contains("2 files sent, 1 refused"), "{text}");
    run(&["systemctl", "stop", "jobtrace-push"]);
    assert_eq!(property("Result").trim(), "success");
    assert!(files::list(&outbox).unwrap().is_empty());

    let text = run(&["systemd-analyze", "security", "--no-pager", "jobtrace-push.service"]);
    let score = text.lines().find_map(|line| line.split("Overall exposure level for").nth(1));
    let score = score.and_then(|rest| rest.split(": ").nth(1)?.split(' ').next()?.parse().ok());
    let score: f64 = score.unwrap_or_else(|| panic!("no score in {text}"));
    eprintln!("exposure {score}");
    assert!(score <= EXPOSURE, "{score}: {text}");
}
