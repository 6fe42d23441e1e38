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

/// The kernel's numbers and names of the types that hooks are attached by.
pub struct TypeIds(Vec<(usize, u32, String)>);

impl TypeIds {
    /// Those of `hooks` that the kernel has.
    pub fn find<'a>(kernel: &Btf, hooks: impl IntoIterator<Item = &'a Hook>) -> Self {
        let found = hooks.into_iter().filter_map(|hook| match hook.point {
            Point::Tracepoint(name, _) => {
                Some((kernel.tracepoint_id(name)?, kind::TYPEDEF, tracepoint_typedef(name)))
            }
            Point::FunctionEntry(name) | Point::FunctionExit(name, _) => {
                Some((kernel.function_id(name)?, kind::FUNC, name.into()))
            }
            Point::Event(..) | Point::Software(..) => None,
        });
        Self(found.collect())
    }

    /// As aya wants them: 10 MiB, so no longer than programs are loaded.
    ///
    /// # Errors
    /// When aya reads BTF otherwise than the kernel writes it.
    pub fn to_aya(&self) -> Result<aya::Btf> {
        aya::Btf::parse(&self.outline(), Endianness::default())
            .context("aya cannot read a kernel's types")
    }

    /// BTF of as many types as the greatest number says: nameless ones, but for these.
    fn outline(&self) -> Vec<u8> {
        let count = self.0.iter().map(|(id, ..)| *id).max().unwrap_or(0);
        let word = |word: u32| word.to_ne_bytes();
        let (types_bytes, names_bytes) =
            (count * TYPE_BYTES, 1 + self.0.iter().map(|(.., name)| name.len() + 1).sum::<usize>());
        let mut data = Vec::with_capacity(HEADER_BYTES as usize + types_bytes + names_bytes);
        data.extend(MAGIC.to_ne_bytes());
        data.extend([1, 0]);
        let (types_len, names_len) = (word(types_bytes as u32), word(names_bytes as u32));
        data.extend([word(HEADER_BYTES), word(0), types_len, types_len, names_len].concat());
        let nameless = [word(0), word(PLAIN << 24), word(0)].concat();
        (0..count).for_each(|_| data.extend(&nameless));
        data.push(0);
        let mut name_at = 1;
        for (id, kind, name) in &self.0 {
            // Type 0 is void, and stands nowhere.
            let at = HEADER_BYTES as usize + (id - 1) * TYPE_BYTES;
            data[at..at + 4].copy_from_slice(&word(name_at));
            data[at + 4..at + 8].copy_from_slice(&word(kind << 24));
            data.extend(name.bytes().chain([0]));
            name_at += name.len() as u32 + 1;
        }
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_numbers() {
        let named = [(7, kind::TYPEDEF, "btf_trace_x".into()), (3, kind::FUNC, "f".into())];
        let btf = Btf::parse(TypeIds(named.to_vec()).outline()).unwrap();
        assert_eq!((btf.tracepoint_id("x"), btf.function_id("f")), (Some(7), Some(3)));
        assert_eq!((btf.tracepoint_id("f"), btf.function_id("x")), (None, None));
        for named in [&named[..], &[]] {
            assert!(TypeIds(named.to_vec()).to_aya().is_ok());
        }
    }
}
