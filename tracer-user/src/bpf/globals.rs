//! What of the kernel's fields this kernel has: values of the globals of their names, and offsets.

use std::collections::BTreeMap;

use tracer_ebpf::kernel_fields::{self, MISSING, bit_global};

use super::{
    btf::Btf,
    offsets::{Offsets, is_in_reach},
};

/// Values of a set's read-only globals, by name.
pub type Globals = BTreeMap<&'static str, u64>;

/// Looks every field up in the kernel's types, as if those of the globals `without` were not there.
pub fn find(btf: &Btf, without: &[&str]) -> (Globals, Offsets) {
    let (mut globals, mut offsets) = (Globals::new(), Offsets::new());
    for field in kernel_fields::ALL {
        let member = btf.member(field.path).filter(|member| member.bit_width <= 1);
        let member = member.filter(|member| is_in_reach(member.bit_offset / 8));
        let member = member.filter(|_| !without.contains(&field.global));
        let value = match member {
            None => MISSING,
            Some(member) if member.bit_width == 1 => bit_global(member.bit_offset),
            Some(member) => member.bit_offset / 8,
        };
        globals.insert(field.global, value);
        offsets.extend(member.map(|member| (field.global, member.bit_offset / 8)));
    }
    (globals, offsets)
}
