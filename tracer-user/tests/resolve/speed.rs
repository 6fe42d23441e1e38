//! What a path costs: an agent resolves each cgroup that is made.

use std::time::Instant;

use jobtrace::resolve::Resolver;

use crate::table::rows;

/// Loose, for busy machines: without optimisation it is some 20 µs, with it 7.
const MOST_NS: u128 = 500_000;

#[test]
fn a_path_is_resolved_in_microseconds() {
    let start = Instant::now();
    let resolver = Resolver::new(&[]).unwrap();
    println!("{} µs to compile", start.elapsed().as_micros());
    let rows = rows();
    let each = |rounds: u32| {
        let start = Instant::now();
        let jobs = (0..rounds).flat_map(|_| &rows).filter(|row| resolver.path(row.path).is_job());
        assert!(jobs.count() > 0);
        start.elapsed().as_nanos() / (u128::from(rounds) * rows.len() as u128)
    };
    each(1);
    let ns = each(10);
    println!("{ns} ns a path, over {} paths", rows.len());
    assert!(ns < MOST_NS, "{ns} ns a path");
}
