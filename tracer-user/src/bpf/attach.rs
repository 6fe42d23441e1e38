//! Which hooks can be attached: each tried alone, what this kernel lacks said by name.

use anyhow::{Context, Result, ensure};
use tracer_ebpf::kernel_fields::{self, MISSING};

use super::{
    btf::Btf,
    globals::Globals,
    hook::{Hook, HookState, Point},
    programs::Programs,
    verify::Verified,
};

/// A hook; where it is asked for, whether this kernel passes its check.
pub type Checked = (&'static Hook, Option<Result<()>>);

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
                "tracepoint {name} has different arguments: ({})",
                found.join(", ")
            );
        }
        Point::FunctionEntry(name) => {
            ensure!(btf.has_function(name), "this kernel has no function {name}");
        }
        Point::FunctionExit(name, arguments) => {
            let found = btf
                .function(name)
                .with_context(|| format!("this kernel has no function {name}"))?;
            ensure!(
                found == arguments,
                "function {name} has different arguments: ({})",
                found.join(", ")
            );
        }
        // Whether there is one, tracefs says as it is attached.
        Point::Event(..) | Point::Software(..) => {}
    }
    Ok(())
}

/// Has the kernel verify those of `hooks` that are asked for, passed their check and will be attached if all
/// goes well: that takes longer than anything else, and nothing has to be in its place for it.
pub fn verify_planned(programs: &mut Programs, kernel: &aya::Btf, hooks: &[Checked]) -> Verified {
    programs.load_all(&planned(hooks), kernel)
}

/// Those of `hooks` that will be attached if the kernel refuses none.
pub fn planned(hooks: &[Checked]) -> Vec<&'static Hook> {
    let mut planned: Vec<&'static Hook> = Vec::new();
    for (hook, checked) in hooks {
        if matches!(checked, Some(Ok(()))) && !is_done_by(hook, &planned) {
            planned.push(hook);
        }
    }
    planned
}

/// Attaches those of `hooks` that are asked for and passed their check, in their order, after having those
/// verified that were not; how each fared.
pub fn attach_all(
    programs: &mut Programs,
    kernel: &aya::Btf,
    hooks: Vec<Checked>,
    mut verified: Verified,
) -> Vec<HookState> {
    let mut attached: Vec<&Hook> = Vec::new();
    let mut states = Vec::new();
    let all: Vec<&Hook> = hooks.iter().map(|(hook, _)| *hook).collect();
    for (hook, checked) in hooks {
        states.push(match checked {
            None => HookState::NotNeeded,
            Some(_) if is_done_by(hook, &attached) => HookState::NotNeeded,
            Some(checked) => {
                let verified = verified.remove(hook.program);
                let verify = || verified.unwrap_or_else(|| programs.load(hook, kernel));
                match checked.and_then(|()| verify()).and_then(|()| programs.attach(hook)) {
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
        |other: &&Hook| other.group == hook.group || other.covers.contains(&hook.group);
    attached.iter().any(does_its_work)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    const fn hook(program: &'static str, group: &'static str) -> Hook {
        let point = Point::FunctionEntry("f");
        Hook { program, point, needs: &[], group, covers: &[] }
    }

    static FIRST: Hook = hook("first", "begins");
    static SECOND: Hook = Hook { covers: &["kernel begins"], ..hook("second", "begins") };
    static THIRD: Hook = hook("third", "kernel begins");
    static OTHER: Hook = hook("other", "ends");

    #[test]
    fn what_is_attached_decides_for_those_after_it() {
        assert!(!is_done_by(&SECOND, &[]));
        assert!(is_done_by(&SECOND, &[&FIRST]));
        assert!(!is_done_by(&THIRD, &[&FIRST]));
        assert!(is_done_by(&THIRD, &[&SECOND]));
        assert!(!is_done_by(&OTHER, &[&FIRST, &SECOND]));
    }

    #[test]
    fn an_alternative_is_planned_where_the_one_before_it_fails_its_check() {
        let programs = |checks: [Option<Result<()>>; 4]| {
            let hooks = [&FIRST, &SECOND, &THIRD, &OTHER].into_iter().zip(checks);
            let hooks: Vec<Checked> = hooks.collect();
            planned(&hooks).into_iter().map(|hook| hook.program).collect::<Vec<_>>()
        };
        let good = || Some(Ok(()));
        let bad = || Some(Err(anyhow!("no such function")));
        assert_eq!(programs([good(), good(), good(), good()]), ["first", "third", "other"]);
        assert_eq!(programs([bad(), good(), good(), None]), ["second"]);
        assert_eq!(programs([bad(), bad(), good(), bad()]), ["third"]);
        assert!(programs([None, bad(), None, bad()]).is_empty());
    }
}
