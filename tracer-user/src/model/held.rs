//! What a job held, used or not.

use tracer_ebpf::handle::{Handle, Number};

use super::{
    group::Group,
    tables::{Cpu, MEMORY, Memory},
};

const SECOND_NS: u64 = 1_000_000_000;

/// Sets in `groups` what the job held and used over time in an interval of `span_ns`: cores and memory. Where the
/// interval does not say how much that was, because the job ended in it or it was not read, it is that of `before`.
pub fn add_held(groups: &mut Vec<Group>, before: &[Group], span_ns: u64) {
    let times = |amount: u64, per: u64| {
        u64::try_from(u128::from(amount) * u128::from(span_ns) / u128::from(per))
            .unwrap_or(u64::MAX)
    };
    let known = |groups: &[Group], field: Handle<Number>| {
        groups.iter().find(|group| group.is(field.measurement()))?.number(field)
    };
    let state = |groups: &[Group], field| known(groups, field).or_else(|| known(before, field));
    let memory =
        |groups: &[Group]| groups.iter().find(|group| group.is(&MEMORY)).and_then(used_bytes);
    let used = memory(groups).or_else(|| memory(before));
    let unlimited = groups.iter().any(|group| group.is(&MEMORY) && is_unlimited(group));
    let limit = state(groups, Memory::limit_bytes).filter(|_| !unlimited);
    let amounts = [
        (Cpu::held_ns, state(groups, Cpu::cores_held).map(|cores| times(cores, 1000))),
        (Memory::held_byte_s, limit.map(|bytes| times(bytes, SECOND_NS))),
        (Memory::used_byte_s, used.map(|bytes| times(bytes, SECOND_NS))),
    ];
    for (field, amount) in amounts {
        let Some(amount) = amount else { continue };
        match groups.iter_mut().find(|group| group.is(field.measurement())) {
            Some(group) => group.set(field, amount),
            None if amount > 0 => {
                let mut group = Group::unknown(field.measurement(), Vec::new());
                group.set(field, amount);
                groups.push(group);
            }
            None => {}
        }
    }
}

/// Core time of `millicores` held for `elapsed_ns`.
pub fn core_time_ns(millicores: u64, elapsed_ns: u64) -> u64 {
    let ns = u128::from(millicores) * u128::from(elapsed_ns) / 1000;
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// The most that can be busy at a moment where `millicores` are held: whole cores. A quota is no bound of a moment, for of
/// one period a task may use more than its part of a reading.
pub fn most_at_a_moment(millicores: u64) -> u64 {
    millicores.checked_next_multiple_of(1000).unwrap_or(u64::MAX)
}

/// Thousandths of a core that a job held on average over `elapsed_ns`, and whether that was another number at other
/// times: a quota or a set of CPUs was changed, or one of its nodes was there for a part of the time. `None` where nobody
/// knows.
pub fn cores_on_average(cpu: &Group, elapsed_ns: u64) -> Option<(u64, bool)> {
    let last = cpu.number(Cpu::cores_held).filter(|cores| *cores > 0)?;
    let held_ns = cpu.number(Cpu::held_ns).filter(|ns| *ns > 0);
    let mean = held_ns.and_then(|ns| (u128::from(ns) * 1000).checked_div(elapsed_ns.into()));
    let mean = mean.and_then(|mean| u64::try_from(mean).ok()).unwrap_or(last);
    // What is held within the first and the last moments is an estimate.
    let is_changed = mean.abs_diff(last) > last / 100 * 3 + 5;
    Some(if is_changed { (mean, true) } else { (last, false) })
}

/// Whether `memory`, a job's, says that there is no limit, rather than nothing of it: the limit is read whenever the
/// anonymous memory is.
pub fn is_unlimited(memory: &Group) -> bool {
    memory.number(Memory::limit_bytes).is_none() && memory.number(Memory::anon_bytes).is_some()
}

/// Memory that the job's processes need: without the page cache.
pub fn used_bytes(memory: &Group) -> Option<u64> {
    let (anon, shmem) = (memory.number(Memory::anon_bytes)?, memory.number(Memory::shmem_bytes)?);
    Some(anon.saturating_add(shmem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{group::follow_all, tables::CPU};

    #[test]
    fn memory_times_time() {
        let mut memory = Group::unknown(&MEMORY, Vec::new());
        memory.set(Memory::limit_bytes, 4000);
        memory.set(Memory::anon_bytes, 900);
        memory.set(Memory::shmem_bytes, 100);
        let over_time = |groups: &[Group], before: &[Group], span_ns| {
            let mut groups = groups.to_vec();
            add_held(&mut groups, before, span_ns);
            let of = |field| groups.first().and_then(|group| group.number(field));
            (of(Memory::held_byte_s), of(Memory::used_byte_s))
        };
        let known = std::slice::from_ref(&memory);
        assert_eq!(over_time(known, &[], 2_500_000_000), (Some(10_000), Some(2_500)));
        assert_eq!(over_time(&[], known, 1_000_000_000), (Some(4_000), Some(1_000)), "it ended");
        let unknown = [Group::unknown(&MEMORY, Vec::new())];
        assert_eq!(over_time(&unknown, &[], 5), (None, None), "unknown is not zero");
        memory.set(Memory::limit_bytes, u64::MAX);
        assert_eq!(over_time(&[memory], &[], u64::MAX).0, Some(u64::MAX));
    }

    #[test]
    fn a_limit_that_was_removed_is_held_no_longer() {
        let memory = |anon: Option<u64>, limit: Option<u64>| {
            let mut memory = Group::unknown(&MEMORY, Vec::new());
            memory.set(Memory::anon_bytes, anon);
            memory.set(Memory::limit_bytes, limit);
            memory
        };
        let mut totals: Vec<Group> = Vec::new();
        let mut add = |interval: Group| {
            let mut groups = vec![interval];
            add_held(&mut groups, &totals, SECOND_NS);
            follow_all(&mut totals, &groups);
            let (held, limit) = (Memory::held_byte_s, Memory::limit_bytes);
            (groups[0].number(held), totals[0].number(limit), totals[0].number(held))
        };
        assert_eq!(add(memory(Some(9), Some(4000))), (Some(4000), Some(4000), Some(4000)));
        let unread = (Some(4000), Some(4000), Some(8000));
        assert_eq!(add(memory(None, None)), unread, "what was not read is as it was");
        assert_eq!(add(memory(Some(9), None)), (None, None, Some(8000)), "it was removed");
        assert_eq!(add(memory(None, None)), (None, None, Some(8000)), "and stays away");
        assert_eq!(add(memory(Some(9), Some(500))), (Some(500), Some(500), Some(8500)));
    }

    #[test]
    fn cores_that_changed_are_told_on_average() {
        let of = |last, held_ns: Option<u64>, elapsed_s| {
            let mut group = cpu(Some(last));
            group.set(Cpu::held_ns, held_ns);
            cores_on_average(&group, elapsed_s * SECOND_NS)
        };
        assert_eq!(of(2000, Some(20 * SECOND_NS), 10), Some((2000, false)));
        assert_eq!(
            of(2000, Some(197 * SECOND_NS / 10), 10),
            Some((2000, false)),
            "nearly all of it"
        );
        assert_eq!(
            of(2000, Some(52 * SECOND_NS / 10), 14),
            Some((371, true)),
            "a quota was removed"
        );
        assert_eq!(of(300, Some(61 * SECOND_NS / 10), 6), Some((1016, true)), "one was set");
        assert_eq!(of(2000, None, 10), Some((2000, false)), "nobody knows");
        assert_eq!((of(0, Some(5), 10), of(2000, Some(9), 0)), (None, Some((2000, false))));
    }

    fn cpu(millicores: Option<u64>) -> Group {
        let mut group = Group::unknown(&CPU, Vec::new());
        group.set(Cpu::cores_held, millicores);
        group
    }

    fn held(groups: &[Group], before: &[Group], span_ns: u64) -> Option<u64> {
        let mut groups = groups.to_vec();
        add_held(&mut groups, before, span_ns);
        groups.first().and_then(|group| group.number(Cpu::held_ns))
    }

    #[test]
    fn cores_times_time() {
        assert_eq!(held(&[cpu(Some(1500))], &[], 2_000_000_001), Some(3_000_000_001));
        assert_eq!(held(&[], &[cpu(Some(4000))], 5), Some(20), "those that it had before");
        assert_eq!(held(&[cpu(Some(1000))], &[cpu(Some(4000))], 5), Some(5));
        assert_eq!(held(&[cpu(None)], &[], 5), None, "unknown is not zero");
        assert_eq!(held(&[], &[cpu(Some(4000))], 0), None, "what comes late is no time");
        assert_eq!(held(&[cpu(Some(u64::MAX))], &[], u64::MAX), Some(u64::MAX));
    }
}
