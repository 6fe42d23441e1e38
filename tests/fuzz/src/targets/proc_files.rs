//! /proc/PID/status, a step daemon's title, /proc/PID/fdinfo: what is named there is found, a name that
//! a process gave itself is no answer.

use jobtrace::{
    fuzzing::{fdinfo_number, parent_in, uid_in},
    resolve::sluid::{Sluid, job_in_title},
};

use crate::split::text;

pub fn run(data: &[u8]) {
    if let Some(job) = job_in_title(data) {
        assert!((1..=10).contains(&job.len()) && job.bytes().all(|byte| byte.is_ascii_digit()));
        assert!(data.starts_with(format!("slurmstepd: [{job}").as_bytes()));
    }
    let text = text(data);
    if let Some(sluid) = Sluid::parse(&text) {
        assert_eq!(text.len(), 14, "{sluid:?}");
    }
    // The kernel escapes line feeds in a name, so the first line is the name's whatever is in it.
    let name: String = text.chars().map(|c| if c.is_control() { '_' } else { c }).collect();
    let status = format!("Name:\t{name}\nPPid:\t7\nUid:\t9\t9\t9\t9\n");
    assert_eq!((uid_in(&status), parent_in(&status)), (Some(9), Some(7)), "{name:?}");
    let _ = (uid_in(&text), parent_in(&text));
    let _ = fdinfo_number(&text, "memlock");
    let info = format!("map_name:\t{name}\nmemlock:\t4096\n");
    assert_eq!(fdinfo_number(&info, "memlock"), Some(4096), "{name:?}");
}
