//! The unit as packages ship it, under a real systemd: its own user, its few capabilities, its watchdog.

use std::{
    collections::BTreeSet,
    fs,
    thread::sleep,
    time::{Duration, Instant},
};

use jobtrace_tests::{
    daemon::{Setup, files},
    rig::{systemd::Systemd, wait_for, workload},
    stalls::Stalls,
    traced::program,
    work::monotonic_ns,
};

use jobtrace_tests::daemon::{PATIENCE, kernel::Held};

use super::signals::QUICK;

const UNIT: &str = include_str!("../../../xtask/dist/jobtrace.service");
const USERS: &str = include_str!("../../../xtask/dist/jobtrace.sysusers");
const FOLDERS: &str = include_str!("../../../xtask/dist/jobtrace.tmpfiles");
const CONFIGURATION: &str = include_str!("../../../xtask/dist/jobtrace.toml");
const SPOOL: &str = "/var/spool/jobtrace";
/// What systemd-analyze gives at most: 10 is no protection at all.
const EXPOSURE: f64 = 2.7;

/// `CAP_DAC_READ_SEARCH`, `CAP_SYS_PTRACE`, `CAP_PERFMON`, `CAP_BPF`.
const CAPABILITIES: u64 = 1 << 2 | 1 << 19 | 1 << 38 | 1 << 39;

/// What aya's own parsing of the kernel's types takes, about.
const PARSED_KIB: u64 = 18 << 10;

struct Service(Systemd);

impl Service {
    /// What a package does on an administrator's node, with readings every second.
    fn install() -> Self {
        let service = Self(Systemd::start().unwrap());
        let install =
            |path: &str, bytes: &[u8], mode| service.0.install(path, bytes, mode).unwrap();
        install("/usr/bin/jobtrace", &fs::read(program().unwrap()).unwrap(), 0o755);
        install("/usr/lib/systemd/system/jobtrace.service", UNIT.as_bytes(), 0o644);
        install("/usr/lib/sysusers.d/jobtrace.conf", USERS.as_bytes(), 0o644);
        install("/usr/lib/tmpfiles.d/jobtrace.conf", FOLDERS.as_bytes(), 0o644);
        let spin = workload::workload("spin").unwrap();
        install("/usr/local/bin/spin", &fs::read(spin).unwrap(), 0o755);
        service.configure("#interval = \"10s\"", "interval = \"1s\"");
        service.run(&["systemd-sysusers", "jobtrace.conf"]);
        service.0.command(&["systemd-tmpfiles", "--create", "jobtrace.conf"]).output().unwrap();
        let drop_in = "[Service]\nWatchdogSec=2\nRestartSec=0\n";
        install("/etc/systemd/system/jobtrace.service.d/quick.conf", drop_in.as_bytes(), 0o644);
        service.run(&["systemctl", "daemon-reload"]);
        service
    }

    fn configure(&self, from: &str, to: &str) {
        assert!(CONFIGURATION.contains(from));
        let text = CONFIGURATION.replace(from, to);
        let text = text.replace("#interval = \"10s\"", "interval = \"1s\"");
        self.0.install("/etc/jobtrace/jobtrace.toml", text.as_bytes(), 0o644).unwrap();
    }

    fn run(&self, words: &[&str]) -> String {
        let output = self.0.run(words).unwrap_or_else(|error| {
            panic!("{error:#}: {}: {}", self.journal(), self.0.last_lines())
        });
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn journal(&self) -> String {
        let words = ["journalctl", "--no-pager", "--output=cat", "--unit=jobtrace.service"];
        let output = self.0.command(&words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn property(&self, name: &str) -> String {
        let value = self.run(&["systemctl", "show", "--value", "--property", name, "jobtrace"]);
        value.trim().to_owned()
    }

    /// The agent's process id outside of systemd's namespace.
    fn pid(&self) -> i32 {
        let inside = self.property("MainPID");
        let is_it = |status: &str| {
            let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            let own = status.starts_with("Name:\tjobtrace\n");
            own && ids.is_some_and(|ids| ids.split_whitespace().last() == Some(&inside))
        };
        let folders = fs::read_dir("/proc").unwrap().flatten();
        let pids = folders.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let mut found = pids.filter(|pid| {
            let below = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
            let ours = self.0.cgroup().file_name().unwrap().to_string_lossy().into_owned();
            below.contains(&ours)
                && fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|text| is_it(&text))
        });
        found.next().unwrap_or_else(|| panic!("no agent: {}", self.journal()))
    }

    fn points(&self) -> files::Points {
        files::points(&self.0.path(&format!("{SPOOL}/outbox"))).unwrap()
    }
}

/// A line of `/proc/PID/status`.
fn status(pid: i32, key: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(&format!("{key}:")));
    value.unwrap().trim().to_owned()
}

/// Most resident memory so far, KiB.
fn peak_kib(pid: i32) -> u64 {
    status(pid, "VmHWM").split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn the_hardened_unit_works_under_systemd() {
    let setup = Setup::new("").unwrap();
    let mut outside = setup.start().unwrap();
    let outside_kib = peak_kib(outside.pid());
    outside.end_well().unwrap();
    let service = Service::install();
    let begin = monotonic_ns();
    // Returns when the agent has said that it is ready.
    service.run(&["systemctl", "start", "jobtrace"]);
    eprintln!("active after {} ms", (monotonic_ns() - begin) / 1_000_000);
    assert_eq!(service.property("ActiveState"), "active");
    let text = service.property("StatusText");
    assert!(text.starts_with("tracing the jobs of cgroup"), "{text}");
    let pid = service.pid();
    let uids: BTreeSet<_> =
        status(pid, "Uid").split_whitespace().map(|uid| uid.parse::<u32>().unwrap()).collect();
    assert!(uids.len() == 1 && !uids.contains(&0), "{uids:?}");
    for key in ["CapEff", "CapPrm", "CapBnd"] {
        let held = u64::from_str_radix(&status(pid, key), 16).unwrap();
        assert_eq!(held, CAPABILITIES, "{key} {held:x}");
    }
    assert_eq!(status(pid, "NoNewPrivs"), "1");
    // What the unit refuses costs no memory: all of the kernel's types, parsed, take twice as much as may be more here.
    let own_kib = peak_kib(pid);
    eprintln!("{own_kib} KiB at its peak, {outside_kib} outside");
    assert!(own_kib < outside_kib + PARSED_KIB / 2, "{own_kib} KiB, outside {outside_kib}");

    // A scope is no job of anybody's: the rest of the node's. A session of logind's is one.
    service.run(&[
        "systemd-run",
        "--scope",
        "--quiet",
        "--unit=rig",
        "/usr/local/bin/spin",
        "crowd",
        "2",
        "400",
    ]);
    let said = service.run(&[
        "systemd-run",
        "--scope",
        "--quiet",
        "--unit=session-77",
        "--slice=user-4711.slice",
        "/usr/local/bin/spin",
        "crowd",
        "2",
        "300",
    ]);
    let sum = |job: &str, field| files::sum(&service.points(), "job_sched", job, field);
    // The whole of it is there with the interval in which it ends.
    let truth = workload::report(&said).unwrap().range(|account| account.on_cpu_ns);
    let on_cpu = || sum("77", "on_cpu_ns");
    wait_for("both scopes", PATIENCE, || {
        let is_whole = on_cpu() >= truth.start() - truth.start() / 100;
        (sum("_system", "forks") >= 2 && sum("77", "forks") == 2 && is_whole).then_some(())
    })
    .unwrap_or_else(|error| panic!("{error}: {} of {truth:?}: {}", on_cpu(), service.journal()));
    // Beyond the program there is systemd-run itself, before it becomes the program.
    assert!(on_cpu() < truth.end() + 50_000_000, "{} of {truth:?}", on_cpu());

    // Another profile counts at once; a wrong one is refused by systemctl itself.
    service.configure("#profile = \"summary\"", "profile = \"histogram\"");
    service.run(&["systemctl", "reload", "jobtrace"]);
    let buckets = || files::jobs(&service.points(), "job_hist").contains("_system");
    wait_for("buckets", PATIENCE, || buckets().then_some(())).unwrap();
    service.configure("#profile = \"summary\"", "profile = \"wrong\"");
    let refused = service.0.command(&["systemctl", "reload", "jobtrace"]).output().unwrap();
    assert!(!refused.status.success());
    assert_eq!((service.pid(), service.property("ActiveState")), (pid, "active".to_owned()));
    service.configure("#profile = \"summary\"", "profile = \"histogram\"");

    // It hangs.
    let held = Held::by(pid).unwrap();
    assert!(!held.left().links.is_empty());
    let begin = monotonic_ns();
    // SAFETY: no pointers; a process of the rig's.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGSTOP) }, 0);
    wait_for("the watchdog", PATIENCE, || {
        (service.property("NRestarts") == "1" && service.property("ActiveState") == "active")
            .then_some(())
    })
    .unwrap_or_else(|error| panic!("{error}: {}", service.journal()));
    eprintln!("started again after {} ms", (monotonic_ns() - begin) / 1_000_000);
    assert_eq!(held.left_in_the_end(), Held::default());
    assert_ne!(service.pid(), pid);

    sleep(Duration::from_millis(1200));
    let held = Held::by(service.pid()).unwrap();
    let (stalls, begin) = (Stalls::watch(), Instant::now());
    service.run(&["systemctl", "stop", "jobtrace"]);
    let took = begin.elapsed().saturating_sub(stalls.longest());
    eprintln!("stopped in {took:?}");
    assert!(took < QUICK);
    assert_eq!(service.property("Result"), "success");
    assert_eq!(held.left_in_the_end(), Held::default());
    let points = service.points();
    let files = files::list(&service.0.path(&format!("{SPOOL}/outbox"))).unwrap().len();
    assert_eq!(files::intervals(&points).len(), files);

    let words = ["systemd-analyze", "security", "--no-pager", "jobtrace.service"];
    let text = service.run(&words);
    let score = text.lines().find_map(|line| line.split("Overall exposure level for").nth(1));
    let score = score.and_then(|rest| rest.split(": ").nth(1)?.split(' ').next()?.parse().ok());
    let score: f64 = score.unwrap_or_else(|| panic!("no score in {text}"));
    eprintln!("exposure {score}");
    assert!(score <= EXPOSURE, "{score}");
}
