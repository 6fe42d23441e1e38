use super::*;
use crate::resolve::Resolver;

fn answer(path: &str) -> Answer {
    Resolver::new(&[]).unwrap().path(path)
}

fn parse(path: &str, environ: &[&str]) -> JobFacts {
    JobFacts::parse(&answer(path), environ.join("\0").as_bytes(), "n2")
}

const V2: &str = "/system.slice/slurmstepd.scope/job_211/step_0/user/task_0";
const SLURM: &[&str] = &[
    "PATH=/bin",
    "SLURM_JOB_ID=211",
    "SLURM_JOB_NAME=train net",
    "SLURM_JOB_USER=ada",
    "SLURM_JOB_UID=1000",
    "SLURM_JOB_PARTITION=gpu",
    "SLURM_JOB_ACCOUNT=physics",
    "SLURM_JOB_NODELIST=n[1-4]",
    "SLURM_JOB_NUM_NODES=4",
    "SLURM_NTASKS=16",
    "SLURM_CPUS_ON_NODE=32",
    "SLURM_CLUSTER_NAME=c1",
    "SLURM_ARRAY_JOB_ID=200",
    "SLURM_ARRAY_TASK_ID=11",
    "SLURM_JOB_GPUS=0-3,7",
    "CUDA_VISIBLE_DEVICES=0",
    "SLURM_MEM_PER_NODE=4096",
    "SLURM_MEM_PER_CPU=128",
    "SLURM_MEM_PER_GPU=0",
    "SLURM_JOB_QOS=long",
    "SLURM_RESTART_COUNT=2",
    "SLURM_JOB_START_TIME=1773765869",
    "SLURM_JOB_END_TIME=1773769469",
];

#[test]
fn all_that_slurm_says() {
    let text = |text: &str| Some(text.to_owned());
    let expected = JobFacts {
        job: text("211"),
        name: text("train net"),
        user: text("ada"),
        uid: Some(1000),
        account: text("physics"),
        queue: text("gpu"),
        nodes: text("n[1-4]"),
        node_count: Some(4),
        tasks: Some(16),
        cores: Some(32),
        array_job: text("200"),
        array_task: text("11"),
        gpus: text("0-3,7"),
        gpus_by: text("SLURM_JOB_GPUS"),
        memory_per_node_bytes: Some(4 << 30),
        memory_per_core_bytes: Some(128 << 20),
        memory_per_gpu_bytes: None,
        qos: text("long"),
        restarts: Some(2),
        cluster: text("c1"),
        submitted_s: None,
        start_s: Some(1_773_765_869),
        end_s: Some(1_773_769_469),
        limit_s: None,
    };
    assert_eq!(parse(V2, SLURM), expected);
    assert_eq!(expected.gpu_count(), Some(5));
}

#[test]
fn uuids_count_before_numbers_where_they_name_as_many() {
    let of = |words: &[&str]| parse(V2, words).gpus;
    let (numbers, one) = ("SLURM_JOB_GPUS=0,1", "CUDA_VISIBLE_DEVICES=GPU-8932f937");
    let two = "CUDA_VISIBLE_DEVICES=GPU-8932f937,GPU-8932f938";
    assert_eq!(of(&[numbers, two]).as_deref(), Some("GPU-8932f937,GPU-8932f938"));
    assert_eq!(of(&[numbers, one]).as_deref(), Some("0,1"), "those of one task");
    assert_eq!(of(&[one]).as_deref(), Some("GPU-8932f937"));
    assert_eq!(of(&["SLURM_JOB_GPUS=", one]).as_deref(), Some("GPU-8932f937"));
    let named = parse(V2, &[numbers, two]);
    assert_eq!(named.gpus_by.as_deref(), Some("CUDA_VISIBLE_DEVICES"));
}

#[test]
fn it_is_believed_inside_the_scheduler_only() {
    for path in [
        "/",
        "/system.slice/sshd.service",
        "/user.slice/user-1000.slice/session-3.scope",
        "/system.slice/slurmd.service",
        "/system.slice/slurmstepd.scope/job_211/step_0/slurm",
        "/pbs_jobs.service/jobs/211",
        "/system.slice/slurmstepd.scope/job_212/step_0/user/task_0",
    ] {
        // What every scheduler leaves to CUDA is nobody's own.
        let own: Vec<&str> =
            SLURM.iter().copied().filter(|word| !word.starts_with("CUDA")).collect();
        assert_eq!(parse(path, &own), JobFacts::default(), "{path}");
    }
}

#[test]
fn a_sluid_gets_its_number_unless_another_is_named() {
    let path = "/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0";
    assert_eq!(parse(path, SLURM).job.as_deref(), Some("211"));
    let with = |last| parse(path, &[SLURM, &[last]].concat()).job;
    assert_eq!(with("SLURM_JOB_SLUID=s5K1KKYAYG5D00").as_deref(), Some("211"));
    assert_eq!(with("SLURM_JOB_SLUID=s5K1KKYAYG5D01"), None);
    assert_eq!(parse(path, &["SLURM_JOB_ID=../x"]), JobFacts::default());
}

#[test]
fn other_schedulers() {
    for (path, environ, job, name, queue) in [
        (
            "/pbs_jobs.service/jobs/12345.1",
            &["PBS_JOBID=12345[1].server", "PBS_JOBNAME=a", "PBS_QUEUE=q"][..],
            Some("12345[1].server"),
            Some("a"),
            Some("q"),
        ),
        ("/torque/7.srv", &["PBS_JOBID=8.srv", "PBS_JOBNAME=a"], None, None, None),
        (
            "/lsf/c/job.12.1.2",
            &["LSB_JOBID=12", "LSB_JOBNAME=b", "LSB_QUEUE=n", "LSB_JOBINDEX=0"],
            Some("12"),
            Some("b"),
            Some("n"),
        ),
        (
            "/UGE/4242.1",
            &["JOB_ID=4242", "JOB_NAME=c", "QUEUE=all.q", "SGE_TASK_ID=undefined"],
            Some("4242"),
            Some("c"),
            Some("all.q"),
        ),
        ("/oar/ada_9", &["OAR_JOB_ID=9", "OAR_JOB_NAME=d"], Some("9"), Some("d"), None),
        (
            "/user.slice/user-5.slice/user@5.service/shell-0-f2kVz9.service",
            &["FLUX_JOB_ID=ƒ2kVz9"],
            Some("f2kVz9"),
            None,
            None,
        ),
        ("/system.slice/flux.service", &["FLUX_JOB_ID=ƒ2kVz9"], Some("f2kVz9"), None, None),
        ("/system.slice/other.service", &["FLUX_JOB_ID=ƒ2kVz9"], None, None, None),
        (
            "/kubepods/pod5ba385ca-b6e6-4246-bd66-d48d429dbc12",
            &["HOSTNAME=web-0", "SLURM_JOB_ID=1"],
            None,
            Some("web-0"),
            None,
        ),
        ("/lxc/101", &["HOSTNAME=web-0"], None, None, None),
    ] {
        let facts = parse(path, environ);
        let seen = (facts.job.as_deref(), facts.name.as_deref(), facts.queue.as_deref());
        assert_eq!(seen, (job, name, queue), "{path}");
        assert_eq!(facts.array_task, None, "{path}");
    }
}

#[test]
fn hostile_values_are_made_harmless() {
    let mut environ = b"SLURM_JOB_ID=211\0SLURM_JOB_NAME=\x1b[31m\n\xff\xc3\xa9\0SLURM_NTASKS=-1\0\
        SLURM_JOB_UID=99999999999\0SLURM_MEM_PER_NODE=18446744073709551615\0=x\0novalue\0\
        SLURM_JOB_PARTITION=\0SLURM_JOB_NAME=second\0SLURM_JOB_ACCOUNT="
        .to_vec();
    environ.extend([0xff; 100_000]);
    environ.extend("\0SLURM_CLUSTER_NAME=".bytes().chain("é".repeat(300).bytes()));
    let facts = JobFacts::parse(&answer(V2), &environ, "n2");
    assert_eq!(facts.name.as_deref(), Some("\u{fffd}[31m\u{fffd}\u{fffd}é"));
    assert_eq!((facts.tasks, facts.uid, facts.queue.as_deref()), (None, None, None));
    assert_eq!(facts.memory_per_node_bytes, None);
    let account = facts.account.unwrap();
    assert!(
        account.len() <= LONGEST_BYTES && account.chars().all(|c| c == '\u{fffd}'),
        "{account}"
    );
    let cluster = facts.cluster.unwrap();
    assert_eq!(cluster, "é".repeat(128));
    assert_eq!(JobFacts::parse(&answer(V2), b"", "n2"), JobFacts::default());
}

#[test]
fn gpus_are_counted() {
    for (gpus, count) in [
        ("0", Some(1)),
        ("0,1", Some(2)),
        ("0-3", Some(4)),
        ("GPU-8f7a1c5e-0d3b-4b1c-9a51-77e2f0c4d911,GPU-1-2", Some(2)),
        ("none", Some(0)),
        ("NoDevFiles", Some(0)),
        ("all", None),
        ("3-1", None),
        ("0-18446744073709551615", None),
    ] {
        let facts = JobFacts { gpus: Some(gpus.into()), ..JobFacts::default() };
        assert_eq!(facts.gpu_count(), count, "{gpus}");
    }
    assert_eq!(JobFacts::default().gpu_count(), None);
}

#[test]
fn the_run_time_that_torque_allows() {
    let limit = |walltime| parse("/torque/7.srv", &["PBS_JOBID=7.srv", walltime]).limit_s;
    assert_eq!(limit("PBS_WALLTIME=3600"), Some(3600));
    assert_eq!(limit("PBS_WALLTIME=0"), None);
    assert_eq!(limit("PBS_WALLTIME=01:00:00"), None, "it tells seconds");
}

#[test]
fn what_lsf_says_of_its_hosts_and_of_the_submission() {
    let hosts: String = (0..400).map(|node| format!("n{node} {} ", node + 2)).collect();
    let hosts = format!("LSB_MCPU_HOSTS={hosts}");
    let file = "LSB_JOBFILENAME=/home/ada/.lsbatch/1239206877.748";
    let job = parse("/lsf/c/job.748.1.2", &["LSB_JOBID=748", &hosts, file]);
    assert_eq!((job.cores, job.node_count), (Some(4), Some(400)));
    assert_eq!(job.submitted_s, Some(1_239_206_877));
    assert_eq!(job.nodes.map(|nodes| nodes.len()), Some(LONGEST_BYTES), "for people alone");
    let elsewhere = parse("/lsf/c/job.748.1.2", &["LSB_JOBID=748", "LSB_MCPU_HOSTS=n3 8"]);
    assert_eq!((elsewhere.cores, elsewhere.submitted_s), (None, None));
    let unnamed = parse("/lsf/c/job.748.1.2", &[file]);
    assert_eq!(unnamed.submitted_s, None, "nothing says that it is this job's");
}

#[test]
fn threads_of_a_chunk_are_not_cores_of_the_node() {
    let environ = ["PBS_JOBID=12.srv", "NCPUS=2", "PBS_ACCOUNT=physics", "CUDA_VISIBLE_DEVICES="];
    let facts = parse("/pbs_jobs.service/jobs/12", &environ);
    assert_eq!((facts.cores, facts.account.as_deref()), (None, Some("physics")));
    assert_eq!(facts.gpus, None);
}
