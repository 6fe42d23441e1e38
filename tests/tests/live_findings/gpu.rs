//! GPUs that wait or are not used, by a driver made for the test.

use std::process::Command;

use fake_nvml::{Fake, Gpu, Scenario};
use jobtrace_tests::{
    agent::Agent,
    disk::RamDisk,
    findings::{Case, Said, check, said, said_by},
    rig::shaped::Shaped,
    traced::program,
};

const ALTERNATE: &str = env!("CARGO_BIN_EXE_alternate");
const MIB: u64 = 1 << 20;
const USER: u32 = 65_534;

pub const CASES: &[Case] = &[
    Case { rule: "gpu_idle", speaks: || busy("30"), silent: || busy("75") },
    Case { rule: "gpu_busy", speaks: || busy("98"), silent: || busy("75") },
    Case { rule: "gpu_unused", speaks: || held("sleep 8"), silent: || held("exec alternate") },
];

/// Two devices, of which the job uses the first where it uses one.
pub fn driver() -> Fake {
    let gpu = |uuid: &str| Gpu {
        uuid: uuid.into(),
        name: "NVIDIA H100 80GB HBM3".into(),
        memory_total: 80 << 30,
        ..Gpu::default()
    };
    Fake::new(&Scenario { gpus: vec![gpu("GPU-0"), gpu("GPU-1")], ..Scenario::default() })
}

/// jobtrace with that driver.
pub fn with(fake: &Fake) -> Command {
    let mut start = Command::new(program().unwrap());
    start.env("LD_LIBRARY_PATH", fake.folder());
    start
}

/// A job that keeps its GPU busy for so many percent of the time.
fn busy(percent: &str) -> Said {
    let (fake, disk) = (driver(), RamDisk::new(64 * MIB));
    let folder = fake.folder().to_str().unwrap();
    said_by(with(&fake), &[], &[ALTERNATE, folder, "0", &disk.path(), "10", percent, "spin"])
}

/// A job of Slurm's that was given the first GPU; `alternate` in its script keeps it busy.
fn held(script: &str) -> Said {
    let (fake, disk) = (driver(), RamDisk::new(64 * MIB));
    let folder = fake.folder().to_str().unwrap().to_owned();
    let shaped = Shaped::make(&[""]);
    let agent = Agent::start_by(with(&fake), "hierarchy = \"v2\"").unwrap();
    let job = shaped.job(USER, 91, "step_0");
    let alternate = format!("{ALTERNATE} {folder} 0 {} 8 95 spin", disk.path());
    let mut command = job.command("sh");
    command.args(["-c", &script.replace("alternate", &alternate)]);
    command.envs([("SLURM_JOB_ID", "91"), ("SLURM_JOB_GPUS", "0"), ("SLURM_JOB_UID", "65534")]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    shaped.remove_job(USER, 91);
    let (_, records) = agent.stop_with_records().unwrap();
    said(records.into_iter().filter(|record| record.job().job == "91").collect())
}

#[test]
fn each_rule_speaks_of_its_job_and_not_of_the_other() {
    check(CASES);
}
