//! The parsers on what the commands print. Slurm's are outputs of Slurm 22.05, its users and nodes renamed
//! (`tests/tests/live_agent/slurm_facts.rs` asks the real one); PBS's and LSF's are made after published ones.

use super::*;
use crate::scheduler::{
    lsf::bjobs,
    pbs::qstat,
    slurm::{sacct, scontrol},
};

const S: u64 = 1_000_000_000;
const GIB: u64 = 1 << 30;

fn exit(code: i32) -> Option<Exit> {
    Some(Exit { code: Some(code), signal: None })
}

/// Of slurmdbd 22.05, which knows no GPUs here: these are put in.
const SACCT: &str = "\
7|FAILED|3:0|1795399692|1795399694|1795399695|4|2|billing=4,cpu=4,gres/gpu=2,mem=200M,node=2|billing=4,cpu=4,gres/gpu=2,gres/gpu:a100=2,mem=200M,node=2|7|main|root|normal
10|OUT_OF_MEMORY|0:125|1795399692|1795399696|1795399697|1|1|billing=1,cpu=1,mem=40M,node=1|billing=1,cpu=1,mem=40M,node=1|UNLIMITED|main|root|normal
12|REQUEUED|0:0|1795399726|1795399727|1795399729|1|1|billing=1,cpu=1,mem=64M,node=1|billing=1,cpu=1,mem=64M,node=1|5|main|root|normal
12|CANCELLED by 0|0:0|1795399731|1795399734|1795399738|1|1|billing=1,cpu=1,mem=64M,node=1|billing=1,cpu=1,mem=64M,node=1|5|main|root|normal
8|RUNNING|0:0|1795399692|1795399695|Unknown|1|1|billing=1,cpu=1,mem=50M,node=1|billing=1,cpu=1,mem=50M,node=1|UNLIMITED|main|root|normal
3|CANCELLED by 0|0:0|1795399629|1795399631|1795399674|1|1||billing=1,cpu=1,mem=50M,node=1||||Unknown
broken|line
";

fn of_sacct(job: &str) -> Told {
    sacct(SACCT, job).pop().expect("a run")
}

#[test]
fn sacct_tells_a_job() {
    let expected = Told {
        source: "",
        state: "FAILED".into(),
        end_reason: Some(EndReason::Itself),
        exit: exit(3),
        submit: Some(1_795_399_692 * S),
        start: Some(1_795_399_694 * S),
        end: Some(1_795_399_695 * S),
        nodes: Some(2),
        cores: Some(4),
        memory_per_node_bytes: Some(100 << 20),
        gpus: Some(2),
        time_limit_ns: Some(420 * S),
        partition: "main".into(),
        account: "root".into(),
        qos: "normal".into(),
    };
    assert_eq!(of_sacct("7"), expected);
    assert!(sacct(SACCT, "1").is_empty() && sacct(SACCT, "70").is_empty());
    let killed = of_sacct("10");
    assert_eq!((killed.end_reason, killed.time_limit_ns), (Some(EndReason::OutOfMemory), None));
    let running = of_sacct("8");
    assert_eq!((running.end_reason, running.exit, running.end), (None, None, None));
    // What slurmdbd was told of too late.
    let late = of_sacct("3");
    assert_eq!((late.memory_per_node_bytes, late.qos.as_str()), (Some(50 << 20), ""));
}

#[test]
fn of_a_requeued_job_the_run_is_told_that_was_under_way() {
    let runs = sacct(SACCT, "12");
    let [first, last] = &runs[..] else { panic!("two runs") };
    assert_eq!(first.end_reason, Some(EndReason::Requeued));
    assert_eq!((last.end_reason, last.state.as_str()), (Some(EndReason::Cancelled), "CANCELLED"));
    let at = |begin, end| run_of(runs.clone(), Span { begin: begin * S, end: end * S });
    assert_eq!(at(1_795_399_727, 1_795_399_729).as_ref(), Some(first));
    assert_eq!(at(1_795_399_734, 1_795_399_738).as_ref(), Some(last));
    // An hour before, that number was another job's.
    assert_eq!(at(1_795_396_127, 1_795_396_129), None);
}

#[test]
fn scontrol_tells_a_job_whatever_its_owner_calls_it() {
    let text = "\
JobId=4711 ArrayJobId=4709 ArrayTaskId=2 JobName=a JobState=FAILED ExitCode=9:0
   UserId=ada(1000) GroupId=ada(1000) MCS_label=N/A
   Priority=4294901758 Nice=0 Account=physics QOS=normal
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   RunTime=00:00:01 TimeLimit=1-02:00:00 TimeMin=N/A
   SubmitTime=1795377000 EligibleTime=1795377000
   AccrueTime=1795377000
   StartTime=1795377600 EndTime=1795471200 Deadline=N/A
   Partition=main AllocNode:Sid=n1:7
   NodeList=n1
   NumNodes=1 NumCPUs=4 NumTasks=1 CPUs/Task=4 ReqB:S:C:T=0:0:*:*
   TRES=cpu=4,mem=2G,node=1,billing=4
   Comment=JobState=TIMEOUT TimeLimit=1

JobId=4712 JobName=b
   JobState=COMPLETED Reason=None Dependency=(null)
";
    let [told] = &scontrol(text, "4711")[..] else { panic!("one job") };
    assert_eq!((told.state.as_str(), told.end_reason, told.exit), ("RUNNING", None, None));
    assert_eq!((told.start, told.end), (Some(1_795_377_600 * S), None));
    assert_eq!((told.cores, told.nodes, told.gpus), (Some(4), Some(1), None));
    assert_eq!(told.memory_per_node_bytes, Some(2 * GIB));
    assert_eq!(told.time_limit_ns, Some(93_600 * S));
    assert_eq!((&*told.partition, &*told.account, &*told.qos), ("main", "physics", "normal"));
}

const QSTAT: &str = "\
Job Id: 4711.pbs1
    Job_Name = fit
    Job_Owner = ada@login1.example.org
    resources_used.walltime = 00:29:58
    job_state = F
    queue = workq
    server = pbs1
    ctime = Sun Nov 22 19:50:00 2026
    Error_Path = login1.example.org:/home/ada/a very long path that qstat breaks in
\tto two = lines
    exec_host = n1/0*8+n2/0*8
    mtime = Sun Nov 22 20:30:09 2026
    Resource_List.mem = 64gb
    Resource_List.ncpus = 16
    Resource_List.ngpus = 2
    Resource_List.nodect = 2
    Resource_List.select = 2:ncpus=8:mem=32gb:ngpus=1
    Resource_List.walltime = 01:00:00
    stime = Sun Nov 22 20:00:00 2026
    obittime = Sun Nov 22 20:30:00 2026
    Variable_List = PBS_O_HOME=/home/ada,
\tPBS_O_WORKDIR=/home/ada
    Exit_status = 271
    Submit_arguments = -N fit job.sh
    project = _pbs_project_default

Job Id: 4712.pbs1
    job_state = R
";

#[test]
fn qstat_tells_a_job() {
    let [told] = &qstat(QSTAT, "4711.pbs1", 0)[..] else { panic!("one job") };
    let minutes = |from: Option<u64>, to: Option<u64>| (to.unwrap() - from.unwrap()) / S / 60;
    assert_eq!((minutes(told.submit, told.start), minutes(told.start, told.end)), (10, 30));
    assert_eq!(told.exit, Some(Exit { code: None, signal: Some(15) }));
    assert_eq!((told.state.as_str(), told.end_reason), ("F", Some(EndReason::Itself)));
    assert_eq!((told.cores, told.nodes, told.gpus), (Some(16), Some(2), Some(2)));
    assert_eq!(told.memory_per_node_bytes, Some(32 * GIB));
    assert_eq!(told.time_limit_ns, Some(3600 * S));
    assert_eq!((&*told.partition, &*told.account), ("workq", ""));
    let [running] = &qstat(QSTAT, "4712", 0)[..] else { panic!("one job") };
    assert_eq!((running.state.as_str(), running.end_reason, running.exit), ("R", None, None));
    assert!(qstat(QSTAT, "4711[3].pbs1", 0).is_empty(), "a job of an array is another");
}

#[test]
fn qstats_statuses() {
    for (status, reason, expected) in [
        ("0", EndReason::Itself, exit(0)),
        ("1", EndReason::Itself, exit(1)),
        ("137", EndReason::Itself, exit(137)),
        ("-29", EndReason::TimeLimit, None),
        ("-27", EndReason::OutOfMemory, None),
        ("-3", EndReason::Itself, None),
    ] {
        let text = QSTAT.replace("Exit_status = 271", &format!("Exit_status = {status}"));
        let told = &qstat(&text, "4711", 0)[0];
        assert_eq!((told.end_reason, told.exit), (Some(reason), expected), "{status}");
    }
}

#[test]
fn bjobs_tells_a_job_that_ended_at_its_limit() {
    let text = "
Job <4711>, Job Name <fit>, User <ada>, Project <physics>, Status <EXIT>, Queue <short>, Command <echo TERM_OWNER, Queue <x>>, Share group charged </ada>
Sun Nov 22 19:50:00: Submitted from host <login1>, CWD <$HOME/fit>, 8 Task(s), Requested Resources <span[hosts=1] rusage[mem=4096]>;
Sun Nov 22 20:00:00: Started 8 Task(s) on Host(s) <n1> <n1>, Allocated 8 Slot(s) on Host(s) <n1>, Execution Home </home/ada>, Execution CWD </home/ada/fit>;
Sun Nov 22 20:20:31: Exited with exit code 140. The CPU time used is 1190.2 seconds.
Sun Nov 22 20:20:31: Completed <exit>; TERM_RUNLIMIT: job killed after reaching LSF run time limit.

 RUNLIMIT
 20.0 min of n1

 CORELIMIT MEMLIMIT
      0 M      4 G

 SCHEDULING PARAMETERS:
           r15s   r1m  r15m   ut      pg    io   ls    it    tmp    swp    mem
 loadSched   -     -     -     -       -     -    -     -     -      -      -
";
    let near = clock::moment("2026-11-22T21:00:00").unwrap();
    let [told] = &bjobs(text, "4711", near)[..] else { panic!("one job") };
    let expected = Told {
        state: "EXIT".into(),
        end_reason: Some(EndReason::TimeLimit),
        exit: exit(140),
        submit: clock::moment("2026-11-22T19:50:00"),
        start: clock::moment("2026-11-22T20:00:00"),
        end: clock::moment("2026-11-22T20:20:31"),
        cores: Some(8),
        memory_per_node_bytes: Some(4 * GIB),
        time_limit_ns: Some(1200 * S),
        partition: "short".into(),
        account: "physics".into(),
        ..Told::default()
    };
    assert_eq!(told, &expected);
    let done = text
        .replace("Status <EXIT>", "Status <DONE>")
        .replace("Exited with exit code 140.", "Done successfully.")
        .replace("Sun Nov 22 20:20:31: Completed <exit>; TERM_RUNLIMIT: job killed", "");
    let told = &bjobs(&done, "4711", near)[0];
    assert_eq!((told.end_reason, told.exit), (Some(EndReason::Itself), exit(0)));
    assert!(bjobs(text, "471", near).is_empty());
}

#[test]
fn numbers_with_units() {
    for (text, expected) in [
        ("4G", Some(4 * GIB)),
        ("4000Mn", Some(4000 << 20)),
        ("1.50T", Some(3 << 39)),
        ("16gb", Some(16 * GIB)),
        ("512", Some(512 << 20)),
        ("0", None),
        ("", None),
        ("x", None),
        ("4Q", None),
    ] {
        assert_eq!(bytes(text, 1 << 20), expected, "{text}");
    }
    for (text, expected) in [
        ("1-02:00:00", Some(93_600 * S)),
        ("00:30:00", Some(1800 * S)),
        ("90", Some(90 * S)),
        ("UNLIMITED", None),
        ("1:2:3:4:5", None),
        ("99999999999999999-00:00:00", None),
        ("", None),
    ] {
        assert_eq!(span_ns(text), expected, "{text}");
    }
}

#[test]
fn an_id_that_is_none_is_not_asked_for_and_a_manager_without_commands_neither() {
    let span = Span { begin: 0, end: 1 };
    for job in ["-x", "", "4711;reboot", "4711 4712", &"7".repeat(100)] {
        assert!(ask("slurm", job, span).is_err(), "{job}");
    }
    assert!(!is_known("run") && is_known("lsf"));
    assert!(matches!(ask("run", "4711", span), Ok(None)));
}

#[test]
fn any_output_is_read_without_a_panic() {
    let whole =
        [QSTAT, "Job <1>, Status <EXIT>\n RUNLIMIT\n", "1|2|3\n", "JobId=1\n\nJobId=1 \n=\n"]
            .concat();
    for cut in (0..whole.len()).filter(|at| whole.is_char_boundary(*at)) {
        for text in [&whole[cut..], &whole[..cut]] {
            for parse in [|t: &str| sacct(t, "1"), |t: &str| scontrol(t, "1")] {
                assert!(parse(text).len() <= MOST_RUNS);
            }
            assert!(qstat(text, "4711", 5).len() + bjobs(text, "1", 5).len() <= 2 * MOST_RUNS);
        }
    }
    assert_eq!(sacct(&"1|||||||||||||\n".repeat(1000), "1").len(), MOST_RUNS);
}
