//! The running kernel's type information: offsets of struct members, tracepoint signatures and enum
//! values, looked up by name.
//!
//! Source: Documentation/bpf/btf.rst of the kernel. Only what jobtrace asks is decoded; nothing is
//! copied but two numbers for each type.

mod names;

use std::cell::Cell;

use anyhow::{Context, Result, bail, ensure};
use names::Names;

/// Where the kernel shows its types.
pub const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

pub(super) const MAGIC: u16 = 0xeb9f;
pub(super) const TYPE_BYTES: usize = 12;
/// Structs in one another, and members looked at, for one question: more than any kernel has. Damaged
/// information may hold a struct in itself.
const DEEPEST: u32 = 32;
const MOST_MEMBERS: u32 = 1 << 13;

pub(super) mod kind {
    pub(in crate::bpf) const PTR: u32 = 2;
    pub(in crate::bpf) const STRUCT: u32 = 4;
    pub(in crate::bpf) const UNION: u32 = 5;
    pub(in crate::bpf) const ENUM: u32 = 6;
    pub(in crate::bpf) const TYPEDEF: u32 = 8;
    pub(in crate::bpf) const VOLATILE: u32 = 9;
    pub(in crate::bpf) const CONST: u32 = 10;
    pub(in crate::bpf) const RESTRICT: u32 = 11;
    pub(in crate::bpf) const FUNC: u32 = 12;
    pub(in crate::bpf) const FUNC_PROTO: u32 = 13;
    pub(in crate::bpf) const TYPE_TAG: u32 = 18;
}

/// Parsed type information.
pub struct Btf {
    data: Vec<u8>,
    strings: usize,
    /// Offset of each type in `data`; type 0 is void.
    types: Vec<u32>,
    names: Names,
}

/// Place of a member in its outermost struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Offset in bits.
    pub bit_offset: u64,
    /// Width in bits of a bit field; 0 for any other member.
    pub bit_width: u32,
}

impl Btf {
    /// Parses raw type information.
    ///
    /// # Errors
    /// When `data` is no BTF of this machine's byte order, or is cut short.
    pub fn parse(data: Vec<u8>) -> Result<Self> {
        let mut btf = Self { data, strings: 0, types: vec![0], names: Names::default() };
        ensure!(btf.u16(0)? == MAGIC, "not BTF in this machine's byte order");
        let header = btf.u32(4)? as usize;
        let (types, types_len) = (btf.u32(8)? as usize, btf.u32(12)? as usize);
        btf.strings = header + btf.u32(16)? as usize;
        let end = header + types + types_len;
        let mut at = header + types;
        while at < end {
            btf.types.push(at as u32);
            at += TYPE_BYTES + extra_bytes(btf.kind(at)?, btf.vlen(at)?)?;
        }
        ensure!(at == end && end <= btf.data.len(), "BTF is cut short");
        btf.names = Names::of(&btf);
        Ok(btf)
    }

    /// Reads the running kernel's.
    ///
    /// # Errors
    /// When the kernel shows none (built without CONFIG_DEBUG_INFO_BTF) or it cannot be read.
    pub fn read() -> Result<Self> {
        let data = std::fs::read(VMLINUX).with_context(|| {
            format!("cannot read {VMLINUX}: boot a kernel with CONFIG_DEBUG_INFO_BTF=y")
        })?;
        Self::parse(data).with_context(|| format!("cannot parse {VMLINUX}"))
    }

    /// Place of the member at `path` (`task_struct.se.cfs_rq`), through nested structs and anonymous
    /// unions. Of several paths, separated by `|`, the first that exists; `None` where none does.
    pub fn member(&self, path: &str) -> Option<Member> {
        path.split('|').find_map(|path| {
            let (root, rest) = path.split_once('.')?;
            let left = Cell::new(MOST_MEMBERS);
            self.named(kind::STRUCT, root).find_map(|at| self.walk(at, rest, DEEPEST, &left))
        })
    }

    /// Size in bytes of the struct or union `name`.
    pub fn size(&self, name: &str) -> Option<u64> {
        let at = [kind::STRUCT, kind::UNION].into_iter().find_map(|of| self.named(of, name).next());
        Some(self.u32(at? + 8).ok()?.into())
    }

    /// Value of `name` in enum `enumeration`.
    pub fn enum_value(&self, enumeration: &str, name: &str) -> Option<u32> {
        self.named(kind::ENUM, enumeration).find_map(|at| {
            (0..self.vlen(at).ok()?).find_map(|index| {
                let member = at + TYPE_BYTES + index * 8;
                (self.name(member)? == name).then(|| self.u32(member + 4).ok())?
            })
        })
    }

    /// Types of a tracepoint's arguments, without the first: `*task_struct` for a pointer to a struct,
    /// `*` for any other pointer, `scalar` for the rest. `None` where the kernel has no such tracepoint.
    pub fn tracepoint(&self, name: &str) -> Option<Vec<String>> {
        let typedef = self.named(kind::TYPEDEF, &tracepoint_typedef(name)).next()?;
        let pointer = self.at(self.u32(typedef + 8).ok()?)?;
        self.arguments(self.at(self.u32(pointer + 8).ok()?)?, 1)
    }

    /// Types of the arguments of function `name`, as [`Self::tracepoint`] has them; `None` where the kernel
    /// has no such function.
    pub fn function(&self, name: &str) -> Option<Vec<String>> {
        let function = self.named(kind::FUNC, name).next()?;
        self.arguments(self.at(self.u32(function + 8).ok()?)?, 0)
    }

    /// Types of the arguments from number `first` on of the prototype at `proto`.
    fn arguments(&self, proto: usize, first: usize) -> Option<Vec<String>> {
        (self.kind(proto).ok()? == kind::FUNC_PROTO).then_some(())?;
        let argument = |index| self.describe(self.u32(proto + TYPE_BYTES + index * 8 + 4).ok()?);
        (first..self.vlen(proto).ok()?).map(argument).collect()
    }

    /// Whether the kernel has function `name` as BTF knows it.
    pub fn has_function(&self, name: &str) -> bool {
        self.named(kind::FUNC, name).next().is_some()
    }

    /// Number of the type that a program is attached to the tracepoint `name` by.
    pub fn tracepoint_id(&self, name: &str) -> Option<usize> {
        let typedef = tracepoint_typedef(name);
        self.numbered(kind::TYPEDEF, &typedef).next().map(|(id, _)| id)
    }

    /// Number of the struct `name`.
    pub fn struct_id(&self, name: &str) -> Option<usize> {
        self.numbered(kind::STRUCT, name).next().map(|(id, _)| id)
    }

    /// Number of the type that a program is attached to function `name` by.
    pub fn function_id(&self, name: &str) -> Option<usize> {
        self.numbered(kind::FUNC, name).next().map(|(id, _)| id)
    }

    /// The member at `path` of the struct at `at`, at most `depth` structs further in and with `left`
    /// members to look at.
    fn walk(&self, at: usize, path: &str, depth: u32, left: &Cell<u32>) -> Option<Member> {
        let depth = depth.checked_sub(1)?;
        let (name, rest) = path.split_once('.').unwrap_or((path, ""));
        let bit_fields = self.u32(at + 4).ok()? >> 31 != 0;
        (0..self.vlen(at).ok()?).find_map(|index| {
            left.set(left.get().checked_sub(1)?);
            let member = at + TYPE_BYTES + index * 12;
            let place = self.u32(member + 8).ok()?;
            let (offset, width) =
                if bit_fields { (place & 0xff_ffff, place >> 24) } else { (place, 0) };
            let inner = || self.at(self.plain(self.u32(member + 4).ok()?)?);
            let found = match self.name(member)? {
                "" => self.walk(inner()?, path, depth, left)?,
                found if found != name => return None,
                _ if rest.is_empty() => Member { bit_offset: 0, bit_width: width },
                _ => self.walk(inner()?, rest, depth, left)?,
            };
            Some(Member { bit_offset: found.bit_offset + u64::from(offset), ..found })
        })
    }

    fn describe(&self, id: u32) -> Option<String> {
        let at = self.at(self.plain(id)?)?;
        if self.kind(at).ok()? != kind::PTR {
            return Some("scalar".into());
        }
        let target = self.at(self.plain(self.u32(at + 8).ok()?)?);
        let of_struct = target.filter(|&at| self.kind(at).is_ok_and(|kind| kind == kind::STRUCT));
        Some(of_struct.and_then(|at| self.name(at)).map_or("*".into(), |name| format!("*{name}")))
    }

    /// The type behind typedefs and qualifiers.
    fn plain(&self, mut id: u32) -> Option<u32> {
        use kind::{CONST, RESTRICT, TYPE_TAG, TYPEDEF, VOLATILE};
        // No chain is longer; a damaged one may be endless.
        for _ in 0..64 {
            let Some(at) = self.at(id) else { return Some(id) };
            match self.kind(at).ok()? {
                TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG => id = self.u32(at + 8).ok()?,
                _ => return Some(id),
            }
        }
        None
    }

    fn named<'a>(&'a self, kind: u32, name: &'a str) -> impl Iterator<Item = usize> + 'a {
        self.numbered(kind, name).map(|(_, at)| at)
    }

    /// Number and place of each type of that kind and name.
    fn numbered<'a>(
        &'a self,
        kind: u32,
        name: &'a str,
    ) -> impl Iterator<Item = (usize, usize)> + 'a {
        let alike = self.names.alike(name).map(|id| (id, self.types[id] as usize));
        alike.filter(move |&(_, at)| {
            self.kind(at).is_ok_and(|k| k == kind) && self.is_named(at, name)
        })
    }

    /// It reads no further than `name`.
    fn is_named(&self, at: usize, name: &str) -> bool {
        let rest = self.text(at).and_then(|text| text.strip_prefix(name.as_bytes()));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }

    /// What the name of the type or member at `at` begins with, and all names behind it.
    fn text(&self, at: usize) -> Option<&[u8]> {
        self.data.get(self.strings + self.u32(at).ok()? as usize..)
    }

    /// Offset of type `id`; `None` for void.
    fn at(&self, id: u32) -> Option<usize> {
        self.types.get(id as usize).map(|&at| at as usize).filter(|&at| at != 0)
    }

    fn kind(&self, at: usize) -> Result<u32> {
        Ok(self.u32(at + 4)? >> 24 & 0x1f)
    }

    fn vlen(&self, at: usize) -> Result<usize> {
        Ok(self.u32(at + 4)? as usize & 0xffff)
    }

    fn name(&self, at: usize) -> Option<&str> {
        let text = self.text(at)?;
        let end = text.iter().position(|&byte| byte == 0)?;
        std::str::from_utf8(&text[..end]).ok()
    }

    fn u16(&self, at: usize) -> Result<u16> {
        let bytes = self.data.get(at..at + 2).context("BTF is cut short")?;
        Ok(u16::from_ne_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&self, at: usize) -> Result<u32> {
        let bytes = self.data.get(at..at + 4).context("BTF is cut short")?;
        Ok(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}

/// Name of the type behind tracepoint `name`.
pub(super) fn tracepoint_typedef(name: &str) -> String {
    format!("btf_trace_{name}")
}

/// Bytes that follow the common part of a type.
fn extra_bytes(kind: u32, vlen: usize) -> Result<usize> {
    Ok(match kind {
        1 | 14 | 17 => 4,
        2 | 7..=12 | 16 | 18 => 0,
        3 => 12,
        4 | 5 | 15 | 19 => vlen * 12,
        6 | 13 => vlen * 8,
        _ => bail!("unknown kind {kind} of BTF type: this kernel is newer than jobtrace"),
    })
}

#[cfg(test)]
mod tests;
