//! `imports FOLDER… -- PROGRAM…`: executes each program, then does with each folder what an interpreter does that imports
//! all that is in it: opens and reads modules, and maps compiled modules and libraries to be executed. With a file `kill`
//! in one of them it is killed at its end. It is taken for Python where its file is called so.

use std::{
    fs::{self, File},
    io::Read,
    os::fd::AsRawFd,
    path::Path,
    process::{Command, Stdio},
};

use jobtrace_tests::work::Work;

const PAGE: usize = 4096;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut parts = words.split(|word| word == "--");
    let (folders, programs) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut work = Work::begin();
    for program in programs {
        let status = Command::new(program).stdout(Stdio::null()).status().unwrap();
        assert!(status.success(), "{program}: {status}");
    }
    for folder in folders {
        import(Path::new(folder));
    }
    if folders.iter().any(|folder| Path::new(folder).join("kill").exists()) {
        // SAFETY: it ends this process.
        unsafe { libc::raise(libc::SIGKILL) };
    }
    work.fact("programs", programs.len() as u64);
    work.end();
}

fn import(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !name.ends_with("-info") {
            import(&path);
        } else if name.ends_with(".py") {
            let mut text = String::new();
            File::open(&path).unwrap().read_to_string(&mut text).unwrap();
        } else if name.contains(".so") {
            map(&File::open(&path).unwrap());
        }
    }
}

/// Maps the first page of `file` until this process ends.
fn map(file: &File) {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE);
    // SAFETY: memory that nobody uses.
    let at =
        unsafe { libc::mmap(std::ptr::null_mut(), PAGE, protection, flags, file.as_raw_fd(), 0) };
    assert_ne!(at, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
}
