//! An agent's socket: the real server, with jobs that are made here.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, SystemTime},
};

use jobtrace::{
    base::say::Level,
    commands::agent::{
        log::Log,
        query::{Ask, Queries},
    },
    model::{
        group::Group,
        hist::Hist,
        info::JobInfo,
        job::Job,
        point::Origin,
        tables::{CPU, Cpu, MEMORY, Memory, SCHED, Sched, fact},
    },
    record::{Record, head::Head, running::SOCKET},
};
use tempfile::TempDir;
use tokio::sync::oneshot;

const S: u64 = 1_000_000_000;

/// A job that began `seconds` ago and has computed on `busy` of its 4 cores and been blocked in `blocked` tasks ever
/// since.
pub fn job(id: &str, seconds: u64, busy: u64, blocked: u64) -> Record {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let begin_ns = now.as_nanos() as u64 - seconds * S;
    let job = Job { job: id.into(), manager: "slurm".into(), user: "ada".into(), ..Job::default() };
    let info = JobInfo { name: format!("name{id}"), start_wall_ns: begin_ns, ..JobInfo::default() };
    let origin = Origin { host: "n1".into(), ..Origin::default() };
    let mut record = Record::new(&origin, job, info, begin_ns);
    record.facts.set(const { fact("uid") }, u64::from(rustix::process::getuid().as_raw()));
    let (mut sched, mut cpu, mut memory) = (
        Group::unknown(&SCHED, vec![]),
        Group::unknown(&CPU, vec![]),
        Group::unknown(&MEMORY, vec![]),
    );
    sched.set(Sched::on_cpu_ns, busy * S);
    let mut waits = Hist::default();
    sched.set_hist(Sched::run_queue_wait_ns, waits.clone());
    (0..blocked).for_each(|_| waits.record(S));
    sched.set_hist(Sched::blocked_ns, waits);
    cpu.set(Cpu::cores_held, 4000);
    cpu.set(Cpu::held_ns, 4 * S);
    memory.set(Memory::used_peak_bytes, 1 << 30);
    for _ in 0..seconds {
        record.add(S, &[sched.clone(), cpu.clone(), memory.clone()], &[]);
    }
    record
}

/// It serves until it goes.
pub struct Agent {
    folder: TempDir,
    pub jobs: Arc<Mutex<Vec<Record>>>,
    stop: Option<(oneshot::Sender<()>, thread::JoinHandle<()>)>,
}

impl Agent {
    pub fn start(jobs: Vec<Record>) -> Self {
        let mut agent = Self {
            folder: tempfile::tempdir().unwrap(),
            jobs: Arc::new(Mutex::new(jobs)),
            stop: None,
        };
        agent.begin();
        agent
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join(SOCKET)
    }

    /// Listens, where it did not.
    pub fn begin(&mut self) {
        let (stop, mut stopped) = oneshot::channel();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (dir, jobs) = (self.folder.path().to_owned(), Arc::clone(&self.jobs));
        let serve = async move {
            let mut queries = Queries::start(&dir, &Arc::new(Log::new(Level::Error))).unwrap();
            ready.send(()).unwrap();
            loop {
                queries.tick();
                let ask = tokio::select! {
                    ask = queries.next() => ask,
                    _ = &mut stopped => return,
                };
                let jobs = jobs.lock().unwrap();
                match ask {
                    Ask::Heads(answer) => {
                        let owner = Some(rustix::process::getuid().as_raw());
                        let heads = jobs.iter().map(|record| (owner, Head::from(record)));
                        drop(answer.send(heads.collect()));
                    }
                    Ask::Records(id, _, answer) => {
                        let of_job = jobs.iter().filter(|record| record.job().job == id);
                        drop(answer.send(of_job.cloned().collect()));
                    }
                    Ask::Subject(..) | Ask::Used(..) => panic!("nobody counts"),
                }
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let thread = thread::spawn(move || runtime.block_on(serve));
        is_ready.recv_timeout(Duration::from_secs(20)).unwrap();
        self.stop = Some((stop, thread));
    }

    /// Listens no more.
    pub fn end(&mut self) {
        if let Some((stop, thread)) = self.stop.take() {
            drop(stop);
            thread.join().unwrap();
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.end();
    }
}
