//! The kernel's types as aya wants them to attach programs: it looks up the number of a type by its name,
//! and nothing else.
//!
//! So it gets types that have the kernel's numbers, and names where a hook needs one: no members, no
//! other names. To have it parse all that the kernel shows takes 10 ms and 15 MiB more.

use anyhow::{Context, Result};
use aya::Endianness;

use super::{
    btf::{Btf, MAGIC, TYPE_BYTES, kind, tracepoint_typedef},
    hook::{Hook, Point},
};

/// A kind of type that nothing follows.
const PLAIN: u32 = kind::VOLATILE;
const HEADER_BYTES: u32 = 24;

/// The types that `hooks` are attached by.
///
/// # Errors
/// When aya reads BTF otherwise than the kernel writes it.
pub fn type_ids<'a>(kernel: &Btf, hooks: impl IntoIterator<Item = &'a Hook>) -> Result<aya::Btf> {
    let found = hooks.into_iter().filter_map(|hook| match hook.point {
        Point::Tracepoint(name, _) => {
            Some((kernel.tracepoint_id(name)?, kind::TYPEDEF, tracepoint_typedef(name)))
        }
        Point::FunctionEntry(name) | Point::FunctionExit(name, _) => {
            Some((kernel.function_id(name)?, kind::FUNC, name.into()))
        }
        Point::Software(..) => None,
    });
    let data = outline(&found.collect::<Vec<_>>());
    aya::Btf::parse(&data, Endianness::default()).context("aya cannot read a kernel's types")
}

/// BTF of as many types as the greatest number in `named` says: nameless ones, but for those.
fn outline(named: &[(usize, u32, String)]) -> Vec<u8> {
    let count = named.iter().map(|(id, ..)| *id).max().unwrap_or(0);
    let word = |word: u32| word.to_ne_bytes();
    let mut types = [word(0), word(PLAIN << 24), word(0)].concat().repeat(count);
    let mut strings = vec![0];
    for (id, kind, name) in named {
        // Type 0 is void, and stands nowhere.
        let at = (id - 1) * TYPE_BYTES;
        types[at..at + 4].copy_from_slice(&word(strings.len() as u32));
        types[at + 4..at + 8].copy_from_slice(&word(kind << 24));
        strings.extend(name.bytes().chain([0]));
    }
    let (types_len, strings_len) = (word(types.len() as u32), word(strings.len() as u32));
    let mut data = MAGIC.to_ne_bytes().to_vec();
    data.extend([1, 0]);
    data.extend([word(HEADER_BYTES), word(0), types_len, types_len, strings_len].concat());
    data.extend(types);
    data.extend(strings);
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_numbers() {
        let named = [(7, kind::TYPEDEF, "btf_trace_x".into()), (3, kind::FUNC, "f".into())];
        let btf = Btf::parse(outline(&named)).unwrap();
        assert_eq!((btf.tracepoint_id("x"), btf.function_id("f")), (Some(7), Some(3)));
        assert_eq!((btf.tracepoint_id("f"), btf.function_id("x")), (None, None));
        for named in [&named[..], &[]] {
            assert!(aya::Btf::parse(&outline(named), Endianness::default()).is_ok());
        }
    }
}
