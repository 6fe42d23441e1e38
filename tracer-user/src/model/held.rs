//! What a job held, used or not.

use super::{
    group::Group,
    tables::{CPU, Cpu},
};

/// Sets in `groups` the time for which the job held cores in an interval of `span_ns`. Where the interval does not say
/// how many they were, because the job ended in it, they are those of `before`.
pub fn add_held(groups: &mut Vec<Group>, before: &[Group], span_ns: u64) {
    let cores = |groups: &[Group]| {
        groups.iter().find(|group| group.is(&CPU)).and_then(|group| group.number(Cpu::cores_held))
    };
    let Some(millicores) = cores(groups).or_else(|| cores(before)) else { return };
    let held_ns = u128::from(millicores) * u128::from(span_ns) / 1000;
    let held_ns = u64::try_from(held_ns).unwrap_or(u64::MAX);
    match groups.iter_mut().find(|group| group.is(&CPU)) {
        Some(group) => group.set(Cpu::held_ns, held_ns),
        None if held_ns > 0 => {
            let mut group = Group::unknown(&CPU, Vec::new());
            group.set(Cpu::held_ns, held_ns);
            groups.push(group);
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
