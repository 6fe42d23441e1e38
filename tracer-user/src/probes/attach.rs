//! Attaching: each hook tried alone, what this kernel lacks said by name.

use std::{collections::BTreeMap, io};

use anyhow::Context;
use tracer_ebpf::kernel_fields::{self, MISSING};

use super::{
    btf::Btf,
    hooks::{COVERS, FaultMode, HOOKS, Hook, HookState, Point},
    programs::Programs,
    verify::Verified,
};

/// The kernel's own error for what an architecture lacks; no C library has words for it. Linux before 6.4
/// answers so on arm64 to programs at a function's entry.
const ENOTSUPP: i32 = 524;
const NOT_SUPPORTED: &str = "this kernel does not support it on this architecture (ENOTSUPP)";

/// Whether this kernel has what each of [`HOOKS`] needs, in their order, before the verifier is asked.
pub fn check_all(btf: &Btf, globals: &BTreeMap<&'static str, u64>) -> Vec<anyhow::Result<()>> {
    HOOKS.iter().map(|hook| check(hook, btf, globals)).collect()
}

/// Has the kernel verify what `faults` asks for, passed its check and will be attached if all goes well:
/// that takes longer than anything else, and nothing has to be in its place for it.
pub fn verify_planned(
    programs: &mut Programs,
    kernel: &aya::Btf,
    checked: &[anyhow::Result<()>],
    faults: FaultMode,
) -> Verified {
    let mut planned: Vec<&'static Hook> = Vec::new();
    for (hook, checked) in HOOKS.iter().zip(checked) {
        if checked.is_ok() && is_asked_for(hook, faults) && !is_done_by(hook, &planned) {
            planned.push(hook);
        }
    }
    programs.load_all(&planned, kernel)
}

/// Attaches what `faults` asks for and passed its check, after having those verified that were not; how
/// each of [`HOOKS`] fared, in their order.
pub fn attach_all(
    programs: &mut Programs,
    kernel: &aya::Btf,
    checked: Vec<anyhow::Result<()>>,
    mut verified: Verified,
    faults: FaultMode,
) -> Vec<HookState> {
    let mut attached: Vec<&Hook> = Vec::new();
    let attach = |(hook, checked): (&'static Hook, anyhow::Result<()>)| {
        if !is_asked_for(hook, faults) || is_done_by(hook, &attached) {
            return HookState::NotNeeded;
        }
        let verified = verified.remove(hook.program);
        let verify = || verified.unwrap_or_else(|| programs.load(hook, kernel));
        match checked.and_then(|()| verify()).and_then(|()| programs.attach(hook)) {
            Ok(()) => {
                attached.push(hook);
                HookState::Attached
            }
            Err(error) => HookState::Missing(format!("{error:#}")),
        }
    };
    let mut states: Vec<_> = HOOKS.iter().zip(checked).map(attach).collect();
    // An alternative that failed before the one that attached is no loss.
    for (hook, state) in HOOKS.iter().zip(&mut states) {
        let group = |other: &&Hook| other.group == hook.group;
        if matches!(state, HookState::Missing(_)) && attached.iter().any(group) {
            *state = HookState::NotNeeded;
        }
    }
    states
}

fn is_asked_for(hook: &Hook, faults: FaultMode) -> bool {
    !hook.full_only || faults == FaultMode::Full
}

/// Whether what is attached already does the work of `hook`.
fn is_done_by(hook: &Hook, attached: &[&Hook]) -> bool {
    let does_its_work =
        |other: &&Hook| other.group == hook.group || COVERS.contains(&(other.program, hook.group));
    attached.iter().any(does_its_work)
}

fn check(hook: &Hook, btf: &Btf, globals: &BTreeMap<&'static str, u64>) -> anyhow::Result<()> {
    for need in hook.needs {
        let field = kernel_fields::ALL.iter().find(|field| field.global == *need);
        let path = field.map_or(*need, |field| field.path);
        anyhow::ensure!(
            globals.get(need).is_some_and(|&v| v != MISSING),
            "this kernel has no {path}"
        );
    }
    match hook.point {
        Point::Tracepoint(name, arguments) => {
            let found = btf
                .tracepoint(name)
                .with_context(|| format!("this kernel has no tracepoint {name}"))?;
            anyhow::ensure!(
                found == arguments,
                "tracepoint {name} has different arguments: ({})",
                found.join(", ")
            );
        }
        Point::FunctionEntry(name) => {
            anyhow::ensure!(btf.has_function(name), "this kernel has no function {name}");
        }
        Point::Software(..) => {}
    }
    Ok(())
}

/// The error and its causes in one line, the verifier's log cut down to its last words.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = match error.downcast_ref::<io::Error>() {
            Some(error) if error.raw_os_error() == Some(ENOTSUPP) => NOT_SUPPORTED.to_owned(),
            _ => error.to_string(),
        };
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    match lines.as_slice() {
        [first, .., before, last] => format!("{first} … {before} {last}"),
        _ => lines.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hooks(names: &[&str]) -> Vec<&'static Hook> {
        let find = |name: &&str| HOOKS.iter().find(|hook| hook.program == *name).unwrap();
        names.iter().map(find).collect()
    }

    #[test]
    fn what_is_attached_decides_for_those_after_it() {
        let is_done = |hook: &str, by: &[&str]| is_done_by(hooks(&[hook])[0], &hooks(by));
        let tracepoints = ["page_fault_user", "page_fault_kernel"];
        assert!(!is_done("handle_mm_fault", &[]));
        assert!(is_done("handle_mm_fault", &tracepoints));
        assert!(!is_done("page_fault_kernel", &["page_fault_user"]));
        assert!(is_done("page_fault_kernel", &["handle_mm_fault"]));
        assert!(!is_done("minor_fault_latency", &["handle_mm_fault"]));
        for of_pids in ["mark_victim_pid", "victim_exit"] {
            assert!(is_done(of_pids, &["mark_victim"]));
        }
        assert!(!is_done("victim_exit", &["mark_victim_pid"]));
    }

    #[test]
    fn every_name_is_a_hooks() {
        for (program, group) in COVERS {
            hooks(&[program]);
            assert!(HOOKS.iter().any(|hook| hook.group == group), "{group}");
        }
    }

    #[test]
    fn an_error_that_only_the_kernel_knows_is_put_into_words() {
        let told = |number| {
            let error = anyhow::Error::from(io::Error::from_raw_os_error(number));
            with_causes(error.context("cannot attach").as_ref())
        };
        assert_eq!(told(ENOTSUPP), format!("cannot attach: {NOT_SUPPORTED}"));
        assert!(told(libc::EPERM).contains("not permitted"), "{}", told(libc::EPERM));
    }
}
