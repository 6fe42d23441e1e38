//! What was found of one tracer under one workload, as all the tables have it.

use super::tracers::Tracer;
use super::workload::Workload;

/// A figure, or why there is none.
pub struct Found<T> {
    /// The workload.
    pub workload: &'static str,
    /// The tracer.
    pub tracer: &'static str,
    /// What was found.
    pub figure: Result<T, String>,
}

impl<T> Found<T> {
    /// Of this workload with this tracer.
    pub fn new(workload: &Workload, tracer: &Tracer, figure: Result<T, String>) -> Self {
        Self { workload: workload.id, tracer: tracer.id(), figure }
    }
}

/// The figure of a tracer under a workload of this name, where there is one.
pub fn figure_of<'a, T>(all: &'a [Found<T>], workload: &str, tracer: &str) -> Option<&'a T> {
    let found = all.iter().find(|found| found.workload == workload && found.tracer == tracer)?;
    found.figure.as_ref().ok()
}

/// A failure as a table has it.
pub fn told<T>(result: anyhow::Result<T>) -> Result<T, String> {
    result.map_err(|error| format!("{error:#}"))
}
