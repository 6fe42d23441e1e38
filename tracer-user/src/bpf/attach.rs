//! Which hooks can be attached: each tried alone, what this kernel lacks said by name.

use anyhow::{Context, Result, ensure};
use tracer_ebpf::kernel_fields::{self, MISSING};

use super::{
    btf::Btf,
    globals::Globals,
    hook::{Hook, HookState, Point},
    programs::Programs,
};

/// Whether this kernel has what `hook` needs, before the verifier is asked.
///
/// # Errors
/// Names what it lacks.
pub fn check(hook: &Hook, btf: &Btf, globals: &Globals) -> Result<()> {
    for need in hook.needs {
        let field = kernel_fields::ALL.iter().find(|field| field.global == *need);
        let path = field.map_or(*need, |field| field.path);
        ensure!(globals.get(need).is_some_and(|&v| v != MISSING), "this kernel has no {path}");
    }
    match hook.point {
        Point::Tracepoint(name, arguments) => {
            let found = btf
                .tracepoint(name)
                .with_context(|| format!("this kernel has no tracepoint {name}"))?;
            ensure!(
                found == arguments,
                "tracepoint {name} has other arguments: ({})",
                found.join(", ")
            );
        }
        Point::FunctionEntry(name) => {
            ensure!(btf.has_function(name), "this kernel has no function {name}");
        }
        Point::Software(..) => {}
    }
    Ok(())
}

/// Attaches those of `hooks` that are asked for (`Some`) and passed their check, in their order; how each
/// fared.
pub fn attach_all(
    programs: &mut Programs,
    kernel: &aya::Btf,
    hooks: Vec<(&'static Hook, Option<Result<()>>)>,
) -> Vec<HookState> {
    let mut attached: Vec<&Hook> = Vec::new();
    let mut states = Vec::new();
    let all: Vec<&Hook> = hooks.iter().map(|(hook, _)| *hook).collect();
    for (hook, checked) in hooks {
        states.push(match checked {
            None => HookState::NotNeeded,
            Some(_) if is_done_by(hook, &attached) => HookState::NotNeeded,
            Some(checked) => {
                let mut attach =
                    || programs.load(hook, kernel).and_then(|()| programs.attach(hook));
                match checked.and_then(|()| attach()) {
                    Ok(()) => {
                        attached.push(hook);
                        HookState::Attached
                    }
                    Err(error) => HookState::Missing(format!("{error:#}")),
                }
            }
        });
    }
    // An alternative that failed before the one that attached is no loss.
    for (hook, state) in all.iter().zip(&mut states) {
        let group = |other: &&Hook| other.group == hook.group;
        if matches!(state, HookState::Missing(_)) && attached.iter().any(group) {
            *state = HookState::NotNeeded;
        }
    }
    states
}

/// Whether what is attached already does the work of `hook`.
pub fn is_done_by(hook: &Hook, attached: &[&Hook]) -> bool {
    let does_its_work =
        |other: &&Hook| other.group == hook.group || other.covers == Some(hook.group);
    attached.iter().any(does_its_work)
}
