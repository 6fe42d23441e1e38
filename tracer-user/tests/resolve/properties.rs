//! Whatever a path holds.

use std::sync::LazyLock;

use jobtrace::resolve::{Answer, Resolver};
use proptest::prelude::*;

use crate::table::rows;

/// Compiled once: that takes longer than thousands of paths.
fn resolver() -> &'static Resolver {
    static RESOLVER: LazyLock<Resolver> = LazyLock::new(|| Resolver::new(&[]).unwrap());
    &RESOLVER
}

fn is_sound(answer: &Answer, path: &str) {
    for text in answer.texts() {
        assert!(text.len() <= Answer::LONGEST_BYTES * 3, "{path:?}: {answer:?}");
        assert!(!text.bytes().any(|byte| byte.is_ascii_control()), "{path:?}: {answer:?}");
    }
    let components = path.split('/').filter(|component| !component.is_empty()).count();
    assert!(answer.root <= components, "{path:?}: {answer:?}");
    assert_eq!(answer.is_job(), !answer.job.is_empty());
    assert_eq!(answer.is_job(), answer.root > 0);
}

/// Paths out of the words that rules look for, and of anything.
fn pathological() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("slurm".to_owned()),
        Just("slurmstepd.scope".into()),
        Just("..".into()),
        Just("".into()),
        r"job_[0-9]{0,40}",
        r"step_([0-9]{0,30}|batch)",
        r"task_.{0,3}",
        r"uid_[0-9]{0,12}",
        "user",
        r"s[0-9A-Z]{13}",
        r"pbs_jobs\.service",
        "jobs",
        "jobid",
        r"[0-9]{1,4}(\[[0-9]*\])?\.[a-z]*",
        "docker",
        r"(docker-|libpod-|crio-)?[0-9a-f]{64}(\.scope)?",
        r"machine-.{0,9}\.scope",
        r"user-[0-9]{0,12}\.slice",
        r"session-c?[0-9]*\.scope",
        r"\\x[0-9a-f]{2}.{0,4}",
        r"\PC{0,12}",
        ".{0,12}",
        r"[\x00-\x1f]{1,4}",
        r"lxc\.payload",
        r"condor_slot[0-9]@.{0,9}",
        Just("x".repeat(4096)),
        Just(format!("machine-{}.scope", "n".repeat(300))),
        Just(format!("lxc.payload.{}", "\u{fffd}".repeat(2000))),
    ];
    prop::collection::vec(word, 0..9).prop_map(|words| format!("/{}", words.join("/")))
}

proptest! {
    #[test]
    fn no_path_is_too_much(path in pathological(), any in any::<String>()) {
        let resolver = resolver();
        for path in [path, any] {
            let answer = resolver.path(&path);
            is_sound(&answer, &path);
            prop_assert_eq!(&resolver.path(&path), &answer, "twice the same");
            if let Some(root) = answer.root_of(&path) {
                prop_assert!(path.starts_with(root));
            }
        }
    }

    #[test]
    fn no_process_is_too_much(text in any::<String>(), paths in prop::collection::vec(pathological(), 0..14)) {
        let resolver = resolver();
        let lines: Vec<_> = paths.iter().enumerate().map(|(at, path)| format!("{at}:a,b:{path}")).collect();
        for text in [text, lines.join("\n")] {
            let (answer, line) = resolver.deciding_line(&text);
            prop_assert!(!answer.is_job() || line.is_some());
            prop_assert!(line.is_none_or(|line| text.contains(line)));
        }
    }

    #[test]
    fn what_comes_before_a_job_of_slurm_changes_nothing(
        before in prop::collection::vec(r"[^/\x00]{1,20}", 0..6),
        number in any::<u32>(),
        step in r"[0-9]{1,4}(\+[0-9]{1,2})?|batch|extern|interactive",
        task in r"[0-9]{1,4}|special",
        v1 in any::<bool>(),
        deleted in any::<bool>(),
    ) {
        let own = match v1 {
            true => format!("slurm/uid_7/job_{number}/step_{step}/task_{task}"),
            false => format!("slurmstepd.scope/job_{number}/step_{step}/user/task_{task}"),
        };
        let mut before: String = before.iter().map(|name| format!("/{name}")).collect();
        before.push('/');
        let path = format!("{before}{own}{}", if deleted { " (deleted)" } else { "" });
        let answer = resolver().path(&path);
        prop_assert_eq!(&answer.manager, "slurm");
        prop_assert_eq!(answer.job, number.to_string());
        prop_assert_eq!(answer.step, Some(step));
        prop_assert_eq!(answer.task, Some(task));
        prop_assert_eq!(answer.root, path.split('/').count() - if v1 { 3 } else { 4 });
    }

    #[test]
    fn a_job_of_slurm_wins_over_any_row_before_it(at in any::<prop::sample::Index>(), inner in any::<prop::sample::Index>()) {
        let resolver = resolver();
        let rows = rows();
        let row = &rows[at.index(rows.len())];
        let outer = resolver.path(row.path);
        let nested = resolver.path(&format!("{}/slurmstepd.scope/job_4711/step_3/user/task_2", row.path));
        // All that may be outside and win is another scheduler's job, and a user's own systemd.
        let schedulers = ["slurm", "pbs", "torque", "lsf", "uge", "oar", "htcondor", "flux"];
        let is_users = row.path.contains("/user@");
        let wins = outer.is_job() && schedulers.contains(&outer.manager.as_str());
        let expected = match wins || is_users {
            true => outer.job.as_str(),
            false => "4711",
        };
        prop_assert_eq!(&nested.job, expected, "{}", row.path);
        // And the other way round, what a job nests is its own.
        let nested = &rows[inner.index(rows.len())];
        let answer = resolver.path(&format!("/slurm/uid_1/job_8{}", nested.path));
        prop_assert_eq!(&answer.job, "8", "{}", nested.path);
    }

    #[test]
    fn escapes_are_undone_or_kept(byte in any::<u8>(), around in "[a-z]{0,5}") {
        let answer = resolver().path(&format!(r"/machine.slice/machine-{around}\x{byte:02x}{around}z.scope"));
        let expected = match byte {
            b'/' | 0..=0x1f | 0x7f => format!(r"{around}\x{byte:02x}{around}z"),
            _ => {
                let bytes = [around.as_bytes(), &[byte], around.as_bytes(), b"z"].concat();
                String::from_utf8_lossy(&bytes).into_owned()
            }
        };
        prop_assert_eq!(answer.job, expected);
    }
}

#[test]
fn names_of_any_length_and_kind() {
    let resolver = resolver();
    let long = "n".repeat(4096);
    for path in [
        format!("/machine.slice/machine-{long}.scope"),
        format!("/lxc.payload/{long}"),
        format!("/slurm/uid_1/job_{}", "9".repeat(4096)),
        format!("/torque/1.{long}"),
        "/machine.slice/machine-a\x1bb.scope".to_owned(),
        "/lxc/a\tb".to_owned(),
    ] {
        let answer = resolver.path(&path);
        assert!(!answer.is_job(), "{answer:?}");
    }
    let longest = "n".repeat(Answer::LONGEST_BYTES);
    assert_eq!(resolver.path(&format!("/lxc/{longest}/{long}")).job, longest);
}
