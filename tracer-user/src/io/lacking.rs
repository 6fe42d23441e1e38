//! What this kernel tells nothing of: fields that are then unknown, and the words for it.

use anyhow::{Result, ensure};
use tracer_ebpf::{
    handle::{Handle, Number},
    tables::io::{CALL_OPS, IoKey, op},
};

use super::hooks::{COMPLETED, FETCHED, SUBMITTED, THROTTLED, is_required};
use crate::{
    bpf::hook::{Hook, HookState},
    model::{group::Group, tables::Io},
};

/// What is unknown.
#[derive(Default)]
pub struct Lacking {
    /// Groups of hooks of which none is attached, each with why the last is not.
    groups: Vec<(&'static str, String)>,
    has_account: bool,
}

/// The fields that a group of hooks feeds, and what they tell.
static FED: [(&str, &[Handle<Number>], &str); 2] = [
    (
        FETCHED,
        &[Io::fetched_bytes, Io::fetched_more],
        "the pages that reads and page faults brought into the page cache",
    ),
    (THROTTLED, &[Io::throttled, Io::throttled_ns], "the pauses of tasks that write too fast"),
];

impl Lacking {
    /// By how the hooks fared; `has_account`: whether the kernel keeps one of what tasks read.
    ///
    /// # Errors
    /// When a hook is missing without which nothing is counted.
    pub fn of<'a>(
        hooks: impl Iterator<Item = (&'static Hook, &'a HookState)>,
        has_account: bool,
    ) -> Result<Self> {
        let mut groups: Vec<(&'static str, String)> = Vec::new();
        for (hook, state) in hooks {
            let HookState::Missing(why) = state else { continue };
            ensure!(!is_required(hook), "{}: {why}", hook.program);
            match groups.iter_mut().find(|(group, _)| *group == hook.group) {
                Some((_, reason)) => reason.clone_from(why),
                None => groups.push((hook.group, why.clone())),
            }
        }
        Ok(Self { groups, has_account })
    }

    fn why(&self, group: &str) -> Option<&str> {
        self.groups.iter().find(|(lacking, _)| *lacking == group).map(|(_, why)| &**why)
    }

    /// Takes from the values of `key` what the kernel does not tell, or nobody measures.
    pub fn take_from(&self, group: &mut Group, key: IoKey) {
        let has_moved_nothing = group.number(Io::bytes) == Some(0);
        let mut forget = |field: &Handle<Number>| group.values[field.index()] = None;
        let is_call = u32::from(key.op) < CALL_OPS;
        if !is_call || !self.has_account {
            forget(&Io::device_read_bytes);
        }
        for (hooks, fields, _) in &FED {
            if self.why(hooks).is_some() {
                fields.iter().for_each(&mut forget);
            }
        }
        if u32::from(key.op) != op::MMAP {
            forget(&Io::fetched_more);
        }
        // Who reads nothing fetches nothing: these are the pages of writes, of which the kernel does not tell in a ring.
        if u32::from(key.op) == op::URING_READ && has_moved_nothing {
            forget(&Io::fetched_bytes);
        }
    }

    /// What is unknown, in words.
    pub fn notes(&self) -> Vec<String> {
        let account = (!self.has_account).then(|| {
            let cure = "its kernel is built without CONFIG_TASK_IO_ACCOUNTING";
            format!("bytes that devices read for each operation are unknown: {cure}")
        });
        let fed = FED.iter().filter_map(|(hooks, _, what)| {
            Some(format!("{what} are unknown: {}", self.why(hooks)?))
        });
        let uring = [SUBMITTED, COMPLETED].into_iter().find_map(|hooks| self.why(hooks));
        let uring = uring.map(|why| format!("requests to io_uring are unknown: {why}"));
        account.into_iter().chain(fed).chain(uring).collect()
    }
}

#[cfg(test)]
mod tests {
    use tracer_ebpf::tables::io::OPS;

    use super::*;
    use crate::{
        io::hooks::{self, HOOKS, OPTIONAL},
        model::{group::Value, tables::IO},
    };

    /// All values of `op` known, without what this lacks.
    fn known(lacking: &Lacking, op: u32) -> Vec<&'static str> {
        let tags = vec![String::new(), String::new(), OPS[op as usize].into()];
        let mut group = Group::unknown(&IO, tags);
        group.values.iter_mut().for_each(|value| *value = Some(Value::Number(1)));
        lacking.take_from(&mut group, IoKey { device: 1, op: op as u16, error: 0 });
        let rows = IO.fields.iter().zip(&group.values);
        rows.filter(|(_, value)| value.is_some()).map(|(field, _)| field.name).collect()
    }

    fn lacking(missing: &[&str]) -> Result<Lacking> {
        let states: Vec<_> = hooks::all()
            .map(|hook| match missing.contains(&hook.program) {
                true => HookState::Missing("no such tracepoint".into()),
                false => HookState::Attached,
            })
            .collect();
        Lacking::of(hooks::all().zip(&states), true)
    }

    #[test]
    fn nothing_is_counted_without_a_hook_at_calls() {
        for hook in HOOKS.iter() {
            let error = lacking(&[hook.program]).err().map(|error| error.to_string());
            assert_eq!(error, Some(format!("{}: no such tracepoint", hook.program)));
        }
        let optional: Vec<_> = OPTIONAL.iter().map(|hook| hook.program).collect();
        assert_eq!(lacking(&optional).unwrap().notes().len(), 3);
    }

    #[test]
    fn a_ring_that_nothing_was_read_by_has_fetched_nothing() {
        let fetched = |op: u32, bytes: u64| {
            let tags = vec![String::new(), String::new(), OPS[op as usize].into()];
            let mut group = Group::unknown(&IO, tags);
            group.set(Io::bytes, bytes);
            group.set(Io::fetched_bytes, 4096);
            let key = IoKey { device: 1, op: op as u16, error: 0 };
            Lacking::default().take_from(&mut group, key);
            group.number(Io::fetched_bytes)
        };
        assert_eq!(fetched(op::URING_READ, 0), None);
        assert_eq!(fetched(op::URING_READ, 1), Some(4096));
        assert_eq!(fetched(op::READ, 0), Some(4096), "a read that failed after it had fetched");
    }

    #[test]
    fn what_no_hook_tells_is_unknown_and_said() {
        let none = lacking(&[]).unwrap();
        assert!(none.notes().is_empty());
        assert!(known(&none, op::READ).contains(&"device_read_bytes"));
        assert!(!known(&none, op::MMAP).contains(&"device_read_bytes"), "page faults are no calls");
        assert!(known(&none, op::MMAP).contains(&"fetched_more"));
        let some = lacking(&["io_fetch", "io_fetch_page", "io_submit", "io_submit_sqe"]).unwrap();
        assert_eq!(
            some.notes(),
            [
                "the pages that reads and page faults brought into the page cache are unknown: no such tracepoint",
                "requests to io_uring are unknown: no such tracepoint",
            ]
        );
        for field in ["fetched_bytes", "fetched_more"] {
            assert!(!known(&some, op::MMAP).contains(&field), "{field}");
        }
        assert!(known(&some, op::READ).contains(&"throttled"));
        let [note] = &Lacking::default().notes()[..] else { panic!("one note") };
        assert!(note.contains("CONFIG_TASK_IO_ACCOUNTING"));
        assert!(!known(&Lacking::default(), op::READ).contains(&"device_read_bytes"));
    }
}
