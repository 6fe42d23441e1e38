//! Attaching: each hook tried alone, what this kernel lacks said by name.

use std::collections::BTreeMap;

use anyhow::Context;
use tracer_ebpf::kernel_fields::{self, MISSING};

use super::{
    btf::Btf,
    hooks::{COVERS, FaultMode, HOOKS, Hook, HookState, Point},
    programs::Programs,
};

/// Whether this kernel has what each of [`HOOKS`] needs, in their order, before the verifier is asked.
pub fn check_all(btf: &Btf, globals: &BTreeMap<&'static str, u64>) -> Vec<anyhow::Result<()>> {
    HOOKS.iter().map(|hook| check(hook, btf, globals)).collect()
}

/// Attaches what `faults` asks for and passed its check; how each of [`HOOKS`] fared, in their order.
pub fn attach_all(
    programs: &mut Programs,
    kernel: &aya::Btf,
    checked: Vec<anyhow::Result<()>>,
    faults: FaultMode,
) -> Vec<HookState> {
    let mut attached: Vec<&str> = Vec::new();
    let attach = |(hook, checked): (&Hook, anyhow::Result<()>)| {
        if (hook.full_only && faults != FaultMode::Full) || attached.contains(&hook.group) {
            return HookState::NotNeeded;
        }
        let mut attach = || programs.load(hook, kernel).and_then(|()| programs.attach(hook));
        match checked.and_then(|()| attach()) {
            Ok(()) => {
                attached.push(hook.group);
                let covered = COVERS.iter().filter(|(program, _)| *program == hook.program);
                attached.extend(covered.map(|(_, group)| *group));
                HookState::Attached
            }
            Err(error) => HookState::Missing(format!("{error:#}")),
        }
    };
    let mut states: Vec<_> = HOOKS.iter().zip(checked).map(attach).collect();
    // An alternative that failed before the one that attached is no loss.
    for (hook, state) in HOOKS.iter().zip(&mut states) {
        if matches!(state, HookState::Missing(_)) && attached.contains(&hook.group) {
            *state = HookState::NotNeeded;
        }
    }
    states
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
                "tracepoint {name} has other arguments: ({})",
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
        let more = error.to_string();
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
