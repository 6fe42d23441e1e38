//! Starts a command inside a cgroup before its exec.
//!
//! The child puts itself into every hierarchy between fork and exec, so that the exec and all after
//! it are charged to the job: no first page fault and no first switch is missed, whatever the kernel.

use std::{
    env,
    error::Error,
    ffi::{OsStr, OsString},
    fmt,
    fs::File,
    io::{self, Read, Write},
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
};

use super::{signals::Signals, wait::Running};
use crate::{
    base::{clock::monotonic_ns, open_files::OpenFiles},
    cgroup::job::JobCgroup,
};

/// Added to an error number in the child when a cgroup refused, so that the parent can tell it from
/// the exec's: `std` hands the number through unchanged.
const JOIN_FAILED: i32 = 1 << 20;
/// Room for error numbers below the index of the cgroup.
const PER_CGROUP: i32 = 1 << 12;

/// Why a command did not start.
#[derive(Debug)]
pub enum StartError {
    /// No such program.
    NotFound(OsString),
    /// It is there, but what is to run it (after its `#!`, or the dynamic loader that it names) is not.
    NoInterpreter(OsString),
    /// It is there but cannot be executed.
    NotExecutable(OsString, io::Error),
    /// The cgroup at this path did not take it.
    Cgroup(PathBuf, io::Error),
    /// jobtrace was told to end by this signal before the command began.
    Interrupted(i32),
    /// Anything else: what was tried, and the error.
    Other(String, io::Error),
}

impl StartError {
    /// The exit status for it: 127 and 126 as in a shell, 128 + signal, else 2 (start-up).
    pub fn status(&self) -> u8 {
        match self {
            Self::NotFound(_) | Self::NoInterpreter(_) => 127,
            Self::NotExecutable(..) => 126,
            Self::Interrupted(signal) => 128 + *signal as u8,
            Self::Cgroup(..) | Self::Other(..) => 2,
        }
    }

    fn of(program: &OsStr, directories: &[PathBuf], error: io::Error) -> Self {
        let number = error.raw_os_error().unwrap_or(0);
        if number >= JOIN_FAILED {
            let number = number - JOIN_FAILED;
            let directory = directories.get((number / PER_CGROUP) as usize).cloned();
            let error = io::Error::from_raw_os_error(number % PER_CGROUP);
            return Self::Cgroup(directory.unwrap_or_default(), error);
        }
        match number {
            libc::ENOENT if is_in_path(program) => Self::NoInterpreter(program.to_owned()),
            libc::ENOENT => Self::NotFound(program.to_owned()),
            // execvp says so too where a directory of PATH cannot be searched.
            libc::EACCES if !is_path(program) && !is_in_path(program) => {
                Self::NotFound(program.to_owned())
            }
            libc::EACCES
            | libc::EPERM
            | libc::ENOEXEC
            | libc::EISDIR
            | libc::ENOTDIR
            | libc::ETXTBSY
            | libc::ELOOP
            | libc::ENAMETOOLONG
            | libc::EINVAL
            | libc::ELIBBAD
            | libc::E2BIG => Self::NotExecutable(program.to_owned(), error),
            _ => Self::Other(format!("start {}", program.display()), error),
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(program) if program.is_empty() => {
                write!(f, "the command to run is empty")
            }
            Self::NoInterpreter(program) => write!(
                f,
                "{}: cannot be executed: the interpreter or loader that it names is not there",
                program.display()
            ),
            Self::NotFound(program) => {
                write!(f, "{}: command not found, check its spelling and PATH", program.display())
            }
            Self::NotExecutable(program, error) => {
                write!(f, "{}: cannot be executed: {error}", program.display())
            }
            Self::Cgroup(directory, error) => {
                write!(f, "the command cannot join cgroup {}: {error}", directory.display())
            }
            Self::Interrupted(signal) => {
                write!(f, "ended by signal {signal} before the command started")
            }
            Self::Other(what, error) => write!(f, "cannot {what}: {error}"),
        }
    }
}

impl Error for StartError {}

/// Starts `program` with `arguments` inside `cgroup`, with jobtrace's standard streams (or `stdout` for
/// its standard output), directory, environment and process group, the signal state that `signals` found
/// and the limit that `open_files` found. Call it in a tokio runtime. Should jobtrace be killed, the
/// command goes on.
///
/// # Errors
/// See [`StartError`]; nothing runs then.
pub fn start(
    program: &OsStr,
    arguments: &[OsString],
    stdout: Option<io::Stderr>,
    cgroup: Option<&JobCgroup>,
    signals: Signals,
    open_files: OpenFiles,
) -> Result<Running, StartError> {
    let (directories, mut files) = open_cgroups(cgroup)?;
    let inherited = signals.inherited;
    let (mut started, mut tell) =
        io::pipe().map_err(|error| StartError::Other("make a pipe".into(), error))?;
    let forget = signals.witness.forgetting();
    let forget = forget.map_err(|error| StartError::Other("copy a socket".into(), error))?;
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(stdout) = stdout {
        command.stdout(stdout);
    }
    let prepare = move || {
        // From its fork on the child has the group's signals itself. Not later: here the wait is not the
        // job's yet.
        forget();
        for (index, file) in files.iter_mut().enumerate() {
            // "0" is whoever writes.
            if let Err(error) = file.write_all(b"0") {
                let number = error.raw_os_error().unwrap_or(libc::EIO);
                let number = JOIN_FAILED + index as i32 * PER_CGROUP + number;
                return Err(io::Error::from_raw_os_error(number));
            }
        }
        // Without it the start is known a little later only.
        let _ = tell.write_all(&monotonic_ns().to_ne_bytes());
        inherited.restore();
        open_files.restore();
        Ok(())
    };
    // SAFETY: between fork and exec it only reads and writes open files, sets signal state and a limit: no
    // allocation and no lock.
    unsafe { command.pre_exec(prepare) };
    if let Some(signal) = signals.told_to_end() {
        return Err(StartError::Interrupted(signal));
    }
    let child = command.spawn().map_err(|error| StartError::of(program, &directories, error))?;
    // The child has written by now, and its end is closed by the exec; ours goes with the command.
    drop(command);
    let mut bytes = [0; 8];
    let told = started.read_exact(&mut bytes);
    let started_ns = told.map_or_else(|_| monotonic_ns(), |()| u64::from_ne_bytes(bytes));
    Running::new(child.id(), started_ns, signals)
        .map_err(|error| StartError::Other(format!("watch process {}", child.id()), error))
}

/// Whether `program` is a path, for which nobody looks in PATH.
fn is_path(program: &OsStr) -> bool {
    program.as_bytes().contains(&b'/')
}

/// Whether a file of the name `program` is there: where that is a path, there; else in a directory of PATH.
fn is_in_path(program: &OsStr) -> bool {
    if is_path(program) {
        return Path::new(program).is_file();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// The directories of `cgroup`, and in the same order their `cgroup.procs`, open for writing.
fn open_cgroups(cgroup: Option<&JobCgroup>) -> Result<(Vec<PathBuf>, Vec<File>), StartError> {
    let mut places: Vec<_> = cgroup.into_iter().flat_map(|job| job.places().own()).collect();
    // Each join takes milliseconds of waiting. The one by which the tasks are told apart comes last, so
    // that the waiting is not the job's.
    places.sort_by_key(|place| cgroup.is_some_and(|job| job.tasks().hierarchy == place.number));
    let directories: Vec<_> = places.iter().map(|place| place.directory.to_path_buf()).collect();
    let open = |directory: &PathBuf| {
        let file = File::options().write(true).open(directory.join("cgroup.procs"));
        file.map_err(|error| StartError::Cgroup(directory.clone(), error))
    };
    let files = directories.iter().map(open).collect::<Result<_, _>>()?;
    Ok((directories, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_the_shells() {
        let of = |number| {
            let directories = [PathBuf::from("/a"), PathBuf::from("/b")];
            StartError::of(OsStr::new("x"), &directories, io::Error::from_raw_os_error(number))
        };
        assert_eq!(of(libc::ENOENT).status(), 127);
        let file =
            StartError::of(OsStr::new("./x"), &[], io::Error::from_raw_os_error(libc::EACCES));
        assert_eq!(file.status(), 126);
        assert_eq!(of(libc::EACCES).status(), 127, "no x in PATH");
        assert_eq!(of(libc::ENOMEM).status(), 2);
        let refused = of(JOIN_FAILED + PER_CGROUP + libc::EBUSY);
        assert_eq!(refused.status(), 2);
        assert!(refused.to_string().starts_with("the command cannot join cgroup /b"));
        assert_eq!(StartError::Interrupted(libc::SIGINT).status(), 130);
    }
}
