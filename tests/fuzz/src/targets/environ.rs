//! The environment of a process, which is its user's to write. First line: its cgroup; then its entries,
//! with a zero behind each.

use jobtrace::resolve::{
    facts::{JobFacts, LONGEST_BYTES},
    sluid::Sluid,
};

use super::resolver;
use crate::split::{first_line, text};

pub fn run(data: &[u8]) {
    let (path, environ) = first_line(data);
    let answer = resolver().path(&text(path));
    let facts = JobFacts::parse(&answer, environ, "n1");
    let texts = [
        &facts.job,
        &facts.name,
        &facts.user,
        &facts.account,
        &facts.queue,
        &facts.nodes,
        &facts.array_job,
        &facts.array_task,
        &facts.gpus,
        &facts.cluster,
    ];
    for text in texts.into_iter().flatten() {
        assert!(!text.is_empty() && text.len() <= LONGEST_BYTES, "{text:?}");
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
    let _ = facts.gpu_count();
    // Whatever is appended, the first of equal names counts; and what nobody asks for changes nothing.
    let more = [environ, b"\0SLURM_JOB_NAME=late\0JOB_NAME=late\0PATH=/bin\0".as_slice()].concat();
    let longer = JobFacts::parse(&answer, &more, "n1");
    if facts.name.is_some() {
        assert_eq!(longer, facts, "the first of equal names counts");
    }
    if let Some(sluid) = answer.sluid.as_deref().and_then(Sluid::parse) {
        let whole =
            u64::from(sluid.cluster) << 52 | sluid.submitted_ms << 10 | u64::from(sluid.sequence);
        assert_eq!(whole, sluid.number);
    }
}
