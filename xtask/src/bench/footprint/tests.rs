use super::*;

#[test]
fn what_the_agent_says_of_itself_is_read() {
    let lines = "jobtrace_self,host=n1,job=_system jobs=9i,drain_ns=7i,load=1.5 3\n\
                 job_sched,host=n1,job=990007,user=root execs=8i,interval_ns=2000000000i 3\n\
                 job_sched,host=n1,job=5 drain_ns=1i,execs=1i 3\n\
                 jobtrace_self,host=n1,job=_system drain_ns=5i 4\njobtrace_self,host=n1,job=_system jobs=1i,late_intervals=2i,drain_ns=6i 5\n";
    assert_eq!(values(lines, OWN, "drain_ns"), [7, 5, 6]);
    assert!(values(lines, OWN, "load").is_empty(), "no integer");
    assert_eq!(values(lines, "job_sched,", "execs"), [8], "of the bench's jobs alone");
    let scene = |jobs| Scene::of(jobs, Shape::Flat, Load::Executes, 1, 1);
    let found = said(lines, scene(1)).expect("all is there");
    assert_eq!((found.drain_ns, found.least_drain_ns, found.execs_per_s), (6, 5, 4.0));
    assert_eq!(found.late, 2);
    assert!(said(lines, scene(2)).is_err(), "a job is missing");
}

#[test]
fn programs_are_charged_over_the_first_scene_of_the_same_agent() {
    let row = |tracer, core_ratio, execs_per_s| {
        let said = Said { drain_ns: 1, least_drain_ns: 1, execs_per_s, exec_ns: None, late: 0 };
        let taken = Taken {
            span: Duration::from_secs(60),
            core_ratio,
            rss_bytes: 0,
            peak_rss_bytes: 0,
            map_bytes: 0,
            said: Some(said),
        };
        let scene = Scene::of(100, Shape::Flat, Load::Calm, 10, 60);
        Row { tracer, scene, taken: Ok(taken) }
    };
    let off = Tracer::Agent.id();
    let mut rows = [
        row(off, 0.001, 0.0),
        row(WITH_CENSUS, 0.002, 0.0),
        row(off, 0.003, 1000.0),
        row(WITH_CENSUS, 0.005, 1000.0),
    ];
    charge_execs(&mut rows);
    let charged = rows.map(|row| row.taken.expect("taken").said.expect("said").exec_ns);
    let expected = [None, None, Some(2000), Some(3000)];
    assert_eq!(charged.map(|ns| ns.map(|ns| ns.round() as u64)), expected);
}
