//! The documents that are generated from the code's own tables.

/// docs/METRICS.md.
#[must_use]
pub fn metrics() -> String {
    "# Metrics\n".to_owned()
}

/// docs/CLI.md.
#[must_use]
pub fn cli() -> String {
    "# Command line\n".to_owned()
}
