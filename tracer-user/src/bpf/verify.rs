//! Having the kernel verify programs: most of what a start takes, and the kernel does several at once.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

use anyhow::Result;
use aya::programs::{BtfTracePoint, FEntry, FExit, PerfEvent, Program, TracePoint};

use super::{
    error::with_causes,
    hook::{Hook, Point},
};

/// How programs fared with the verifier, by their names.
pub type Verified = BTreeMap<&'static str, Result<()>>;

/// More at once gain nothing: one takes half of the time of all.
const MOST_AT_ONCE: usize = 4;

/// Has the kernel verify `program`, that of `hook`.
///
/// # Errors
/// When it is of another kind than its hook, or the kernel refuses it.
pub fn verify(program: &mut Program, hook: &Hook, kernel: &aya::Btf) -> Result<()> {
    let result = match hook.point {
        Point::Tracepoint(name, _) => <&mut BtfTracePoint>::try_from(program)?.load(name, kernel),
        Point::FunctionEntry(name) => <&mut FEntry>::try_from(program)?.load(name, kernel),
        Point::FunctionExit(name, _) => <&mut FExit>::try_from(program)?.load(name, kernel),
        Point::Event(..) => <&mut TracePoint>::try_from(program)?.load(),
        Point::Software(..) => <&mut PerfEvent>::try_from(program)?.load(),
    };
    result.map_err(|error| anyhow::anyhow!("{}", with_causes(&error)))
}

/// Has the kernel verify all of `programs`, on several CPUs; returns when it is done with the last.
pub fn verify_all(mut programs: Vec<(&'static Hook, &mut Program)>, kernel: &aya::Btf) -> Verified {
    // Taken from the end: in the order of the hooks.
    programs.reverse();
    let (queue, done) = (Mutex::new(programs), Mutex::new(Verified::new()));
    let next = || lock(&queue).pop();
    let work = || {
        while let Some((hook, program)) = next() {
            let verified = verify(program, hook, kernel);
            lock(&done).insert(hook.program, verified);
        }
    };
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 1..cpus.min(MOST_AT_ONCE) {
            // Where there can be no further thread, it takes longer.
            let _ = thread::Builder::new().name("verify".into()).spawn_scoped(scope, work);
        }
        work();
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
