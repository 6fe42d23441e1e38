use jobtrace::{model::source::Source, probes::*};
fn main() {
    let layout = Layout { tasks_hierarchy: 0, tasks_controller: None, block_hierarchy: 7 };
    let faults = if std::env::args().nth(2).as_deref() == Some("full") {
        FaultMode::Full
    } else {
        FaultMode::Major
    };
    let o = Options { faults, log_level: 0, object: std::env::var_os("OBJ").map(Into::into) };
    let mut p = load(&layout, &o).unwrap_or_else(|e| panic!("{e}"));
    for (h, s) in HOOKS.iter().zip(p.states()) {
        println!("{:24} {:?}", h.program, s);
    }
    let cg = "/sys/fs/cgroup/unified/jtx";
    let cb = "/sys/fs/cgroup/blkio/jtx";
    use std::os::unix::fs::MetadataExt;
    for c in [cg, cb] {
        let _ = std::fs::create_dir(c);
    }
    let ino = |p: &str| std::fs::metadata(p).unwrap().ino();
    p.track(1, ino(cg), ino(cb)).unwrap();
    let _ = p.snapshot();
    if std::env::args().nth(3).is_some() {
        p.attach_empty().unwrap();
        std::fs::write("/proc/sys/kernel/bpf_stats_enabled", "1").unwrap();
    }
    let cmd = std::env::args().nth(1).unwrap();
    let st = std::process::Command::new("sh")
        .arg("-c")
        .arg(format!("echo $$ > {cg}/cgroup.procs; echo $$ > {cb}/cgroup.procs; {cmd}"))
        .status()
        .unwrap();
    println!("{st:?}");
    std::fs::write("/proc/sys/kernel/bpf_stats_enabled", "0").unwrap();
    if std::env::args().nth(3).is_some() {
        for r in p.program_runs() {
            if r.count > 0 {
                println!("{:24} {:8} {:.1}", r.name, r.count, r.time_ns as f64 / r.count as f64);
            }
        }
        return;
    }
    let s = p.snapshot().unwrap().unwrap();
    println!(
        "{}",
        serde_json::to_string_pretty(&s)
            .unwrap()
            .lines()
            .filter(|l| !l
                .trim()
                .chars()
                .next()
                .is_some_and(|c| c.is_ascii_digit() || c == '[' || c == ']'))
            .collect::<Vec<_>>()
            .join("\n")
    );
    for r in p.program_runs() {
        if r.count > 0 {
            println!("{:24} {:8} {:.1}", r.name, r.count, r.time_ns as f64 / r.count as f64);
        }
    }
    std::thread::sleep(std::time::Duration::from_millis(50));
    for c in [cg, cb] {
        std::fs::remove_dir(c).unwrap();
    }
}
