//! Jobs that are older than the programs: what their processes have mapped now, by one bounded read.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    os::unix::fs::MetadataExt,
};

use tracer_ebpf::tables::io_file::FileId;

/// Most processes of a job that are looked at.
const MOST_PROCESSES: usize = 64;
/// Most of a process's mappings that are looked at.
const MOST_BYTES: u64 = 4 << 20;

/// What a process has mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Its program, by a name of its own: the kernel's number of it is not to be had from here.
    pub id: FileId,
    /// Path of its program.
    pub program: String,
    /// Paths of the files that it has mapped to be executed, but for the program.
    pub libraries: Vec<String>,
}

/// What each of `processes` has mapped; those that have ended are left out.
pub fn read(processes: &[u32]) -> Vec<Mapped> {
    processes.iter().take(MOST_PROCESSES).filter_map(|process| read_of(*process)).collect()
}

fn read_of(process: u32) -> Option<Mapped> {
    let link = format!("/proc/{process}/exe");
    let path = fs::read_link(&link).ok()?.to_string_lossy().into_owned();
    let program = path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned();
    let inode = fs::metadata(&link).ok()?.ino();
    let maps = File::open(format!("/proc/{process}/maps")).ok()?;
    let lines = BufReader::new(maps.take(MOST_BYTES)).split(b'\n').map_while(Result::ok);
    let mut libraries: Vec<_> =
        lines.filter_map(|line| executable(&String::from_utf8_lossy(&line))).collect();
    libraries.sort();
    libraries.dedup();
    libraries.retain(|library| *library != program);
    Some(Mapped { id: FileId { device: 0, generation: 0, inode }, program, libraries })
}

/// The file that `line` of /proc/PID/maps says is mapped to be executed.
fn executable(line: &str) -> Option<String> {
    let mut fields = line.splitn(6, ' ');
    let rights = fields.nth(1)?;
    let path = fields.nth(3)?.trim_start();
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    (rights.contains('x') && path.starts_with('/')).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_mapped_to_be_executed_are_told_by_their_lines() {
        let line = "7f00-7f01 r-xp 00001000 fe:00 1234                       /usr/lib/my lib.so.1";
        assert_eq!(executable(line).as_deref(), Some("/usr/lib/my lib.so.1"));
        for other in [
            "7f00-7f01 r--p 00001000 fe:00 1234                       /usr/lib/lib.so.1",
            "7ffd-7ffe r-xp 00000000 00:00 0                          [vdso]",
            "7f00-7f01 rwxp 00000000 00:00 0 ",
            "",
        ] {
            assert_eq!(executable(other), None, "{other}");
        }
    }

    #[test]
    fn this_process_has_a_program_and_its_c_library() {
        let all = read(&[std::process::id(), u32::MAX]);
        assert_eq!(all.len(), 1);
        let own = std::env::current_exe().unwrap();
        assert_eq!(all[0].program, own.to_string_lossy());
        assert!(all[0].libraries.iter().any(|path| path.contains("/libc.so")), "{all:?}");
    }
}
