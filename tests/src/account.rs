//! What the kernel itself says of a process, of a job's cgroup and of the node: the truth. Reads
//! /proc and the cgroup files; knows nothing of jobtrace.

use std::{collections::BTreeMap, fs, ops::AddAssign, ops::RangeInclusive};

use serde::{Deserialize, Serialize};

use crate::own_cgroup::own_directory;
use jobtrace::cgroup::hierarchies::Hierarchies;

/// The kernel's counters of one task, or of several added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// /proc/PID/schedstat, first number.
    pub on_cpu_ns: u64,
    /// /proc/PID/schedstat, second number.
    pub run_delay_ns: u64,
    /// `voluntary_ctxt_switches`.
    pub voluntary: u64,
    /// `nonvoluntary_ctxt_switches`.
    pub involuntary: u64,
    /// `se.nr_migrations` in /proc/PID/sched.
    pub migrations: u64,
    /// Minor faults.
    pub minor: u64,
    /// Major faults.
    pub major: u64,
}

impl Account {
    /// Of the calling task.
    pub fn own() -> Self {
        Self::read("/proc/thread-self")
    }

    /// Of the main thread of `pid`, which may be a zombie.
    pub fn of(pid: i32) -> Self {
        Self::read(&format!("/proc/{pid}"))
    }

    fn read(directory: &str) -> Self {
        let file = |name| {
            fs::read_to_string(format!("{directory}/{name}"))
                .unwrap_or_else(|error| panic!("cannot read {directory}/{name}: {error}"))
        };
        let schedstat = file("schedstat");
        let mut times = schedstat.split_whitespace().map(|word| word.parse().unwrap());
        let (status, sched, stat) = (file("status"), file("sched"), file("stat"));
        // The name may hold spaces; field 3, the state, follows its parenthesis.
        let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 1..].split_whitespace().collect();
        Self {
            on_cpu_ns: times.next().unwrap(),
            run_delay_ns: times.next().unwrap(),
            voluntary: line(&status, "voluntary_ctxt_switches"),
            involuntary: line(&status, "nonvoluntary_ctxt_switches"),
            migrations: line(&sched, "se.nr_migrations"),
            minor: fields[10 - 3].parse().unwrap(),
            major: fields[12 - 3].parse().unwrap(),
        }
    }
}

impl AddAssign for Account {
    fn add_assign(&mut self, more: Self) {
        self.on_cpu_ns += more.on_cpu_ns;
        self.run_delay_ns += more.run_delay_ns;
        self.voluntary += more.voluntary;
        self.involuntary += more.involuntary;
        self.migrations += more.migrations;
        self.minor += more.minor;
        self.major += more.major;
    }
}

/// The number in the line `key : value` of `text`.
fn line(text: &str, key: &str) -> u64 {
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    });
    value.unwrap_or_else(|| panic!("no {key} in {text}")).parse().unwrap()
}

/// `read_bytes` and `write_bytes` in a text of /proc/PID/io: what a process, and all whom it has reaped,
/// caused on block devices.
pub fn block_bytes(io: &str) -> [u64; 2] {
    ["read_bytes", "write_bytes"].map(|key| line(io, key))
}

/// What a workload says of itself, as its last words: one line of JSON on standard output.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The workload's first process at the begin of `main`: partly before it was in the job.
    pub begin: Account,
    /// The same right before it ends.
    pub end: Account,
    /// All its descendants, read when they were zombies: complete.
    pub children: Account,
    /// `cpuacct.usage` of the cgroup it is in, or v2's `usage_usec`.
    pub usage_ns: u64,
    /// Facts of the one workload, by name.
    pub facts: BTreeMap<String, u64>,
}

impl Report {
    /// What the tasks did as members of the job: at least since `main` began, at most in all.
    pub fn range(&self, value: impl Fn(&Account) -> u64) -> RangeInclusive<u64> {
        let (begin, end) = (value(&self.begin), value(&self.end));
        let children = value(&self.children);
        children + end - begin..=children + end
    }

    /// A fact by name.
    pub fn fact(&self, name: &str) -> u64 {
        *self.facts.get(name).unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }
}

/// Time on CPU of the caller's cgroup and those below it: cpuacct's where it is mounted, else v2's.
pub fn cgroup_usage_ns() -> u64 {
    if let Some(directory) = own_directory("cpuacct") {
        let text = fs::read_to_string(directory.join("cpuacct.usage")).unwrap();
        return text.trim().parse().unwrap();
    }
    let directory = own_directory("").expect("a cgroup hierarchy that counts CPU time");
    let text = fs::read_to_string(directory.join("cpu.stat")).unwrap();
    let usec = text.lines().find_map(|line| line.strip_prefix("usage_usec ")).unwrap();
    usec.parse::<u64>().unwrap() * 1000
}

/// Bytes and requests per operation (`Read`, `Write`, `Discard`) that the kernel charged to the
/// caller's cgroup on device `major:minor`: by the v1 blkio controller, else by v2's io controller;
/// empty where neither counts for that cgroup.
pub fn cgroup_blkio(device: &str) -> BTreeMap<String, u64> {
    let Some(directory) = own_directory("blkio") else { return cgroup_io(device) };
    let mut values = BTreeMap::new();
    for file in ["io_service_bytes", "io_serviced"] {
        let text = fs::read_to_string(directory.join(format!("blkio.throttle.{file}"))).unwrap();
        for line in text.lines() {
            if let [of, op, value] = line.split(' ').collect::<Vec<_>>()[..]
                && of == device
            {
                values.insert(format!("{file}_{op}"), value.parse().unwrap());
            }
        }
    }
    values
}

/// The same from io.stat, a line for each device: `7:0 rbytes=0 wbytes=4096 rios=0 wios=1 …`.
fn cgroup_io(device: &str) -> BTreeMap<String, u64> {
    let own = own_directory("").map(|directory| directory.join("io.stat"));
    let text = own.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let Some((_, words)) = lines.find(|(of, _)| *of == device) else { return BTreeMap::new() };
    let names = [
        ("rbytes", "io_service_bytes_Read"),
        ("wbytes", "io_service_bytes_Write"),
        ("dbytes", "io_service_bytes_Discard"),
        ("rios", "io_serviced_Read"),
        ("wios", "io_serviced_Write"),
        ("dios", "io_serviced_Discard"),
    ];
    let value = |word: &str| {
        let (key, value) = word.split_once('=')?;
        let (_, name) = names.iter().find(|(own, _)| *own == key)?;
        Some(((*name).to_owned(), value.parse().ok()?))
    };
    words.split(' ').filter_map(value).collect()
}

/// The node's own totals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Node {
    /// Time on CPU of all tasks, where cpuacct is v1.
    pub on_cpu_ns: Option<u64>,
    /// Of that, the threads of process 1.
    pub first_process_ns: u64,
    /// Time in which a CPU had no task, and in which the hypervisor took it away, all CPUs added up.
    pub idle_ns: u64,
    /// Context switches, those of the idle tasks included.
    pub switches: u64,
    /// Tasks made.
    pub forks: u64,
    /// Requests read from and written to the device asked for.
    pub ops: [u64; 2],
    /// Bytes read from and written to it.
    pub bytes: [u64; 2],
    /// Milliseconds its requests took from being made to being completed.
    pub took_ms: [u64; 2],
}

impl Node {
    /// Reads /proc/stat, and /proc/diskstats for `device`.
    pub fn read(device: &str) -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap();
        let number = |key| {
            let value = stat.lines().find_map(|line| line.strip_prefix(key));
            value.unwrap().trim().parse().unwrap()
        };
        let cpuacct = Hierarchies::read().unwrap();
        let cpuacct = cpuacct.v1("cpuacct").map(|v1| v1.mount.join("cpuacct.usage"));
        let usage = |path| fs::read_to_string(path).unwrap().trim().parse().unwrap();
        let mut node = Self {
            on_cpu_ns: cpuacct.map(usage),
            first_process_ns: threads_on_cpu_ns(1),
            idle_ns: cpus_ns(&stat, [IDLE, WAITING_FOR_IO, STOLEN]),
            switches: number("ctxt "),
            forks: number("processes "),
            ..Self::default()
        };
        let stats = fs::read_to_string("/proc/diskstats").unwrap();
        for line in stats.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words[2] == device {
                let at = |index: usize| words[index].parse::<u64>().unwrap();
                node.ops = [at(3), at(7)];
                node.bytes = [at(5) * 512, at(9) * 512];
                node.took_ms = [at(6), at(10)];
            }
        }
        node
    }
}

/// Fields of the first line of /proc/stat, which are in ticks.
const IDLE: usize = 4;
const WAITING_FOR_IO: usize = 5;
const STOLEN: usize = 8;

/// All CPUs' time in these states.
fn cpus_ns<const N: usize>(stat: &str, fields: [usize; N]) -> u64 {
    let words: Vec<&str> = stat.lines().next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields.map(|index| words[index].parse::<u64>().unwrap()).iter().sum();
    ticks * 1_000_000_000 / rustix::param::clock_ticks_per_second()
}

/// Time in which the hypervisor took CPUs away, all CPUs added up: wall time of whoever was on them, which
/// the kernel's account of a task leaves out.
pub fn stolen_ns() -> u64 {
    cpus_ns(&fs::read_to_string("/proc/stat").unwrap(), [STOLEN])
}

/// Time on CPU of the threads that `pid` has now.
fn threads_on_cpu_ns(pid: i32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let texts =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok());
    texts.map(|text| text.split(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}
