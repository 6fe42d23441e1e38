//! What an agent takes on a node with this many possible CPUs: memory of its maps, and the time to
//! read them, without jobs and with some.

use std::fs;

use anyhow::{Context, Result};
use jobtrace_tests::agent::Agent;
use xtask::guest::{Line, Size};

use crate::{jobs, tell};

/// Slots with banks, the rest of the node's included.
const SLOTS: [u64; 2] = [9, 33];

/// Tells a [`Size`] for each kind of fault timing and each number of slots.
///
/// # Errors
/// When an agent does not start or writes nothing.
pub fn measure() -> Result<()> {
    for faults in ["major", "full"] {
        for slots in SLOTS {
            tell::say(&Line::Start { check: format!("{faults}, {slots} slots") });
            tell::say(&Line::Size(one(faults, slots)?));
        }
    }
    Ok(())
}

fn one(faults: &str, slots: u64) -> Result<Size> {
    let agent = Agent::start(&format!(
        "hierarchy = \"{}\"\nfaults = \"{faults}\"\nslots = 64\nspare_slots = {}",
        jobs::hierarchy(),
        slots - 1
    ))?;
    let points = agent.settle()?;
    let anonymous_bytes = agent.anonymous_bytes();
    let last = |field: &str| points.last_own(field).with_context(|| format!("no {field}"));
    let size = Size {
        possible_cpus: cpus("possible")?,
        online_cpus: cpus("online")?,
        faults: faults.into(),
        slots,
        map_bytes: last("map_bytes")?,
        drain_ns: last("drain_ns")?,
        anonymous_bytes,
    };
    agent.stop()?;
    Ok(size)
}

/// How many CPUs a list such as `0-63` or `0` has.
fn cpus(name: &str) -> Result<u64> {
    let text = fs::read_to_string(format!("/sys/devices/system/cpu/{name}"))?;
    let mut count = 0;
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        count += last.parse::<u64>()? - first.parse::<u64>()? + 1;
    }
    Ok(count)
}
