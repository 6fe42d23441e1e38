//! All lines of a /proc/PID/cgroup: the line that decides is one of them.

use jobtrace::fuzzing::is_inside;

use super::{cgroup_path::sound, resolver};
use crate::split::text;

pub fn run(data: &[u8]) {
    let cgroups = text(data);
    let (answer, line) = resolver().deciding_line(&cgroups);
    assert_eq!(resolver().lines(&cgroups), answer);
    assert!(!answer.is_job() || line.is_some());
    let Some(line) = line else { return };
    assert!(cgroups.lines().any(|known| known == line), "{line:?}");
    let path = line.splitn(3, ':').nth(2).expect("a line that decides has a path");
    sound(&answer, path);
    let alone = resolver().lines(line);
    assert_eq!((alone.role, &alone.job), (answer.role, &answer.job), "the line alone: {line:?}");
    for name in path.split('/') {
        assert!(is_inside(&cgroups, name), "{name:?} of {path:?}");
    }
    assert!(!is_inside(&cgroups, "/"), "no directory is called so");
}
