//! Live ring: what the agent writes: taken in by a real InfluxDB, and kept where the disk refuses.

mod faults;
mod influx;
mod metrics;
mod pushed;
mod retention;
mod unit;
