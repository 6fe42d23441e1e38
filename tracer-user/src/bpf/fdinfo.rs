//! What /proc/self/fdinfo tells of maps, and the run statistics of programs.

use std::{
    collections::BTreeMap,
    io::Read,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
};

use super::{lookup::statistics, programs::Programs};

/// Run statistics of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRuns {
    /// Its name.
    pub name: String,
    /// Time it ran, while the kernel's statistics were on.
    pub time_ns: u64,
    /// Times it ran, while they were on.
    pub count: u64,
    /// Runs the kernel skipped because the program was running already.
    pub missed: u64,
}

/// Run statistics of every program that is loaded.
pub fn program_runs(programs: &Programs) -> Vec<ProgramRuns> {
    let runs = |(name, program): (&str, &aya::programs::Program)| {
        let fd = program.fd().ok()?;
        let [time_ns, count, missed] = statistics(fd.as_fd()).ok()?;
        Some(ProgramRuns { name: name.into(), time_ns, count, missed })
    };
    programs.iter().filter_map(runs).collect()
}

/// Memory of one map.
pub fn map_bytes(map: BorrowedFd<'_>) -> Option<u64> {
    number(&read(map)?, "memlock")
}

/// Memory of all BPF maps this process holds, each once.
pub fn all_map_bytes() -> Option<u64> {
    let fds = std::fs::read_dir("/proc/self/fdinfo").ok()?;
    let infos = fds.flatten().filter_map(|fd| read_number(fd.file_name().to_str()?.parse().ok()?));
    let of_map = |info: String| Some((number(&info, "map_id")?, number(&info, "memlock")?));
    let maps: BTreeMap<u64, u64> = infos.filter_map(of_map).collect();
    Some(maps.values().sum())
}

fn read(fd: BorrowedFd<'_>) -> Option<String> {
    read_number(fd.as_raw_fd())
}

fn read_number(fd: i32) -> Option<String> {
    let mut file = std::fs::File::open(format!("/proc/self/fdinfo/{fd}")).ok()?;
    // The kernel gives it whole in one read; asking for its size first would double the time.
    let mut text = vec![0; 4096];
    let len = file.read(&mut text).ok()?;
    text.truncate(len);
    String::from_utf8(text).ok()
}

/// The number behind `key` in a /proc/PID/fdinfo/FD.
pub fn number(info: &str, key: &str) -> Option<u64> {
    let value = |line: &str| line.strip_prefix(key)?.strip_prefix(':')?.trim().parse().ok();
    info.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_whole_keys() {
        let info = "pos:\t0\nmemlock_x:\t1\nmemlock:\t4096\nrun_cnt:\tgarbage\n";
        assert_eq!(number(info, "memlock"), Some(4096));
        assert_eq!(number(info, "run_cnt"), None);
        assert_eq!(number(info, "absent"), None);
    }
}
