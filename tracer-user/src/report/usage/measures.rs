//! What a policy can bound: each number of a row of `jobtrace usage`, by a name and with its words.

use super::Row;

/// What can be bounded.
pub struct Measure {
    /// Its key in the file; never renamed.
    pub name: &'static str,
    pub help: &'static str,
    /// Its words behind the number.
    pub words: &'static str,
    /// Of a row, and of the sum of all rows; `None` where it has none, as the use of GPUs without any.
    pub of: fn(&Row, &Row) -> Option<f64>,
}

/// All of them.
pub static MEASURES: [Measure; 13] = [
    Measure { name: "jobs", help: "jobs", words: "jobs", of: |row, _| Some(row.jobs as f64) },
    Measure {
        name: "core_hours",
        help: "core hours held",
        words: "core hours",
        of: |row, _| Some(row.core_hours_held),
    },
    Measure {
        name: "idle_core_hours",
        help: "those in which no task ran",
        words: "idle core hours",
        of: |row, _| Some(row.idle_core_hours),
    },
    Measure {
        name: "cores_used_percent",
        help: "core hours used of those held",
        words: "% of the cores used",
        of: |row, _| share(row.core_hours_used, row.core_hours_held),
    },
    Measure {
        name: "core_hours_of_all_percent",
        help: "core hours held of those that all rows held",
        words: "% of all core hours",
        of: |row, all| share(row.core_hours_held, all.core_hours_held),
    },
    Measure {
        name: "gpu_hours",
        help: "GPU hours held",
        words: "GPU hours",
        of: |row, _| Some(row.gpu_hours_held),
    },
    Measure {
        name: "idle_gpu_hours",
        help: "those in which no kernel ran",
        words: "idle GPU hours",
        of: |row, _| Some(row.idle_gpu_hours),
    },
    Measure {
        name: "gpus_used_percent",
        help: "GPU hours used of those held",
        words: "% of the GPUs used",
        of: |row, _| share(row.gpu_hours_used, row.gpu_hours_held),
    },
    Measure {
        name: "gpu_hours_of_all_percent",
        help: "GPU hours held of those that all rows held",
        words: "% of all GPU hours",
        of: |row, all| share(row.gpu_hours_held, all.gpu_hours_held),
    },
    Measure {
        name: "memory_gib_hours",
        help: "memory allowed times the time, of jobs with a limit",
        words: "GiB hours",
        of: |row, _| Some(row.memory_gib_hours_held),
    },
    Measure {
        name: "memory_needed_percent",
        help: "the most that they needed of it",
        words: "% of the memory needed",
        of: |row, _| share(row.memory_gib_hours_used, row.memory_gib_hours_held),
    },
    Measure {
        name: "cpu_only_core_hours",
        help: "core hours of jobs without GPUs on nodes on which others held some",
        words: "core hours without a GPU on nodes with some",
        of: |row, _| Some(row.cpu_only_core_hours),
    },
    Measure {
        name: "cpu_only_beside_core_hours",
        help: "those of them in which another job was on the node",
        words: "core hours without a GPU beside others on nodes with some",
        of: |row, _| Some((row.cpu_only_core_hours - row.cpu_only_alone_core_hours).max(0.0)),
    },
];

fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| 100.0 * part / whole)
}
