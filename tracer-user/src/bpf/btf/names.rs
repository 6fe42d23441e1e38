//! Types by the beginnings of their names: a kernel has 150,000 types, and loading asks for some hundred of them.

use std::iter;

use super::Btf;

/// Most have a few types, `btf_trac`, of all tracepoints, some 2,000.
const BUCKETS: usize = 1 << 12;

/// Numbers of the types that have names, those whose names begin alike in one chain, in their order. None of them has
/// number 0.
#[derive(Default)]
pub(super) struct Names {
    /// The first of each bucket; 0 for none.
    first: Vec<u32>,
    /// By type, the next of its bucket; 0 for none.
    next: Vec<u32>,
}

impl Names {
    /// Those of all types of `btf`, whose types are known.
    pub(super) fn of(btf: &Btf) -> Self {
        let mut names = Self { first: vec![0; BUCKETS], next: vec![0; btf.types.len()] };
        for (id, &at) in btf.types.iter().enumerate().skip(1).rev() {
            let at = at as usize;
            let is_named = btf.u32(at).is_ok_and(|name| name != 0);
            if let Some(text) = btf.text(at).filter(|_| is_named) {
                let first = &mut names.first[bucket(text)];
                names.next[id] = *first;
                *first = id as u32;
            }
        }
        names
    }

    /// Numbers of all types whose names may be `name`.
    pub(super) fn alike(&self, name: &str) -> impl Iterator<Item = usize> {
        let is = |id: u32| (id != 0).then_some(id as usize);
        iter::successors(is(self.first[bucket(name.as_bytes())]), move |&id| is(self.next[id]))
    }
}

/// By the first eight bytes of the name, which ends where `text` does or with a zero.
fn bucket(text: &[u8]) -> usize {
    let mut begin = [0; 8];
    let length = text.len().min(8);
    begin[..length].copy_from_slice(&text[..length]);
    let word = u64::from_le_bytes(begin);
    // The highest bit of each byte that is zero; right for the first of them, behind which another name begins.
    let zeros = word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080;
    let own = word & (zeros & zeros.wrapping_neg()).wrapping_sub(1);
    (own.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BUCKETS.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::bucket;

    #[test]
    fn a_name_is_in_the_same_bucket_whatever_is_behind_it() {
        let long = "a\u{1}b\u{80}\u{ff}task_struct";
        for length in (0..long.len()).filter(|&length| long.is_char_boundary(length)) {
            let name = &long[..length];
            let alone = bucket(name.as_bytes());
            for behind in ["\0", "\0\u{1}", "\0x\0", "\0\u{1}\0\0", "\0task_struct"] {
                assert_eq!(
                    bucket(format!("{name}{behind}").as_bytes()),
                    alone,
                    "{name:?} {behind:?}"
                );
            }
        }
    }

    #[test]
    fn short_names_that_differ_are_mostly_apart() {
        let buckets: std::collections::BTreeSet<_> =
            (0..1_000).map(|number| bucket(format!("name{number}\0").as_bytes())).collect();
        assert!(buckets.len() > 800, "{}", buckets.len());
    }
}
