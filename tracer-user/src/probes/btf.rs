//! The running kernel's type information: offsets of struct members, tracepoint signatures and enum
//! values, looked up by name.
//!
//! Source: Documentation/bpf/btf.rst of the kernel. Only what jobtrace asks is decoded; nothing is
//! copied but one offset for each type.

use std::cell::Cell;

use anyhow::{Context, Result, bail, ensure};

/// Where the kernel shows its types.
pub const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

const MAGIC: u16 = 0xeb9f;
const TYPE_BYTES: usize = 12;
/// Structs in one another, and members looked at, for one question: more than any kernel has. Damaged
/// information may hold a struct in itself.
const DEEPEST: u32 = 32;
const MOST_MEMBERS: u32 = 1 << 13;

mod kind {
    pub const PTR: u32 = 2;
    pub const STRUCT: u32 = 4;
    pub const ENUM: u32 = 6;
    pub const TYPEDEF: u32 = 8;
    pub const VOLATILE: u32 = 9;
    pub const CONST: u32 = 10;
    pub const RESTRICT: u32 = 11;
    pub const FUNC_PROTO: u32 = 13;
    pub const TYPE_TAG: u32 = 18;
}

/// Parsed type information.
pub struct Btf {
    data: Vec<u8>,
    strings: usize,
    /// Offset of each type in `data`; type 0 is void.
    types: Vec<u32>,
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
        let mut btf = Self { data, strings: 0, types: vec![0] };
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
        let typedef = self.named(kind::TYPEDEF, &format!("btf_trace_{name}")).next()?;
        let pointer = self.at(self.u32(typedef + 8).ok()?)?;
        let proto = self.at(self.u32(pointer + 8).ok()?)?;
        (self.kind(proto).ok()? == kind::FUNC_PROTO).then_some(())?;
        let argument = |index| self.describe(self.u32(proto + TYPE_BYTES + index * 8 + 4).ok()?);
        (1..self.vlen(proto).ok()?).map(argument).collect()
    }

    /// Whether the kernel has function `name` as BTF knows it.
    pub fn has_function(&self, name: &str) -> bool {
        const FUNC: u32 = 12;
        self.named(FUNC, name).next().is_some()
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
        let all = self.types.iter().skip(1).map(|&at| at as usize);
        all.filter(move |&at| self.kind(at).is_ok_and(|k| k == kind) && self.name(at) == Some(name))
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
        let text = self.data.get(self.strings + self.u32(at).ok()? as usize..)?;
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
mod tests {
    use super::*;

    /// Builds BTF by hand: strings and words of the type section.
    fn btf(strings: &str, types: &[u32]) -> Vec<u8> {
        let types: Vec<u8> = types.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut data = MAGIC.to_ne_bytes().to_vec();
        data.extend([1, 0]);
        for word in [24, 0, types.len() as u32, types.len() as u32, strings.len() as u32] {
            data.extend(word.to_ne_bytes());
        }
        data.extend(types);
        data.extend(strings.as_bytes());
        data
    }

    fn info(kind: u32, vlen: u32, kflag: u32) -> u32 {
        kflag << 31 | kind << 24 | vlen
    }

    #[test]
    fn members_are_found_through_anonymous_unions_nested_structs_and_bit_fields() {
        let strings = "\0outer\0inner\0a\0b\0flag\0";
        // Names: outer 1, inner 7, a 13, b 15, flag 17.
        let types = [
            0,
            info(1, 0, 0),
            4,
            32, // 1: int
            7,
            info(kind::STRUCT, 2, 0),
            8,
            13,
            1,
            0,
            15,
            1,
            32, // 2: struct inner { a; b; }
            0,
            info(5, 1, 0),
            8,
            7,
            2,
            0, // 3: union { struct inner inner; }
            1,
            info(kind::STRUCT, 2, 1),
            16,
            0,
            3,
            64,
            17,
            1,
            3 | 1 << 24, // 4: outer
        ];
        let btf = Btf::parse(btf(strings, &types)).unwrap();
        let plain = |bit_offset| Some(Member { bit_offset, bit_width: 0 });
        assert_eq!(btf.member("outer.inner.b"), plain(96));
        assert_eq!(btf.member("outer.flag"), Some(Member { bit_offset: 3, bit_width: 1 }));
        assert_eq!(btf.member("outer.missing|inner.b"), plain(32));
        assert_eq!(btf.member("outer.missing"), None);
        assert_eq!(btf.member("nothing.at_all"), None);
    }

    #[test]
    fn structs_in_themselves_have_an_end() {
        // struct s { struct s; }, and twelve levels of four anonymous members each.
        let own = [1, info(kind::STRUCT, 1, 0), 4, 0, 1, 0];
        let parsed = Btf::parse(btf("\0s\0", &own)).unwrap();
        assert_eq!(parsed.member("s.a"), None);
        let level = |id: u32| {
            let name = u32::from(id == 1);
            let member = [0, (id + 1).min(12), 0];
            [vec![name, info(kind::STRUCT, 4, 0), 4], member.repeat(4)].concat()
        };
        let types: Vec<u32> = (1..=12).flat_map(level).collect();
        let parsed = Btf::parse(btf("\0s\0", &types)).unwrap();
        assert_eq!(parsed.member("s.a"), None);
    }

    #[test]
    fn damaged_input_is_an_error() {
        let good = btf("\0x\0", &[1, info(kind::STRUCT, 0, 0), 0]);
        assert!(Btf::parse(good.clone()).is_ok());
        assert!(Btf::parse(Vec::new()).is_err());
        assert!(Btf::parse(good[..30].to_vec()).is_err());
        assert!(Btf::parse(btf("\0", &[0, info(31, 0, 0), 0])).is_err());
    }
}
