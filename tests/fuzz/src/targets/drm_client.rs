//! /proc/PID/fdinfo of a file that is open on a GPU: no share is more than all of the time, and what did not
//! change is no work.

use jobtrace::fuzzing::drm_client;

use crate::split::text;

pub fn run(data: &[u8]) {
    let text = text(data);
    let (before, now) = text.split_once('\0').unwrap_or((&text, &text));
    for elapsed_ns in [0, 1, 1_000_000_000, u64::MAX] {
        if let Some((_, shares)) = drm_client(before, now, elapsed_ns) {
            assert!(shares.iter().all(|ppm| *ppm <= 1_000_000), "{shares:?}");
        }
        if let Some((_, shares)) = drm_client(now, now, elapsed_ns) {
            assert!(shares.iter().all(|ppm| *ppm == 0), "{shares:?}");
        }
    }
    // What others write in the file takes nothing away from what the driver does.
    let line: String = text.chars().map(|c| if c.is_control() { '_' } else { c }).collect();
    let info = format!("name:\t{line}\ndrm-driver:\ti915\ndrm-memory-vram:\t4 KiB\n");
    assert_eq!(drm_client(&info, &info, 1), Some((Some(4096), Vec::new())), "{line:?}");
}
