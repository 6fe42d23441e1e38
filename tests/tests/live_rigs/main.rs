//! Live ring: the surroundings themselves (`src/rig`). What other tests build on is what it says it
//! is: Slurm's cgroups have Slurm's shapes, InfluxDB stores and refuses, and nothing stays behind.

use std::time::Duration;

use jobtrace_tests::rig::cgroups::Place;

mod containers;
mod influx;
mod machine;
mod slurm;
mod systemd;

/// How long something may take that takes a moment.
pub const MOMENT: Duration = jobtrace_tests::rig::PATIENCE;

/// Where `processes` are, in the hierarchy of `controller` or in v2 where that is empty.
pub fn path(places: &[Place], controller: &str) -> String {
    let is_meant = |place: &&Place| place.controllers.split(',').any(|name| name == controller);
    places.iter().find(is_meant).map(|place| place.path.clone()).unwrap_or_default()
}
