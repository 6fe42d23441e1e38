//! jobtrace.
fn main() {}
