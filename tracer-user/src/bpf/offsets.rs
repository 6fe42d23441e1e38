//! Offsets of the kernel's fields, written into the programs' loads.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use object::{Object, ObjectSection, SectionKind, read::elf::ElfFile64};
use tracer_ebpf::kernel_fields::{ALL, FIRST_MARK};

const INSTRUCTION_BYTES: usize = 8;
/// BPF_LDX, in the low three bits of an instruction's code.
const CLASS_LOAD: u8 = 1;
/// An offset that no load may have: the verifier refuses the program that would run it.
const REFUSED: i16 = -1;

/// Offset in bytes of each field, by the name of its global; those that this kernel lacks are left out.
pub type Offsets = BTreeMap<&'static str, u64>;

/// Whether the programs can load what lies at `offset`.
pub const fn is_in_reach(offset: u64) -> bool {
    offset < FIRST_MARK as u64
}

/// Writes each field's offset into the loads of `object` that bear its mark.
///
/// # Errors
/// When the object is no ELF.
pub fn apply(object: &mut [u8], offsets: &Offsets) -> Result<()> {
    for range in programs(object)? {
        let program = object.get_mut(range).context("the BPF object is cut off")?;
        for instruction in program.chunks_exact_mut(INSTRUCTION_BYTES) {
            let [code, _, low, high, ..] = *instruction else { continue };
            let mark = i16::from_le_bytes([low, high]);
            if code & 7 != CLASS_LOAD || mark < FIRST_MARK {
                continue;
            }
            let field = ALL.get((mark - FIRST_MARK) as usize);
            let field = field.context("the BPF object loads a field that this program lacks")?;
            let offset = match offsets.get(field.global) {
                Some(&offset) => {
                    ensure!(is_in_reach(offset), "{} is out of reach", field.path);
                    offset as i16
                }
                None => REFUSED,
            };
            instruction[2..4].copy_from_slice(&offset.to_le_bytes());
        }
    }
    Ok(())
}

/// Where the instructions lie in the file.
///
/// # Errors
/// When the object is no ELF.
pub(super) fn programs(object: &[u8]) -> Result<Vec<std::ops::Range<usize>>> {
    let elf = ElfFile64::<object::Endianness>::parse(object).context("the BPF object is no ELF")?;
    let text = elf.sections().filter(|section| section.kind() == SectionKind::Text);
    let range = |(start, size): (u64, u64)| start as usize..(start + size) as usize;
    Ok(text.filter_map(|section| section.file_range().map(range)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::tests::object;

    /// Marks, and other offsets, of all loads.
    fn loads(object: &[u8]) -> (Vec<i16>, Vec<i16>) {
        let ranges = programs(object).unwrap().into_iter();
        let instructions = ranges.flat_map(|range| object[range].chunks_exact(INSTRUCTION_BYTES));
        let offsets = instructions
            .filter(|instruction| instruction[0] & 7 == CLASS_LOAD)
            .map(|instruction| i16::from_le_bytes([instruction[2], instruction[3]]));
        offsets.partition(|offset| *offset >= FIRST_MARK)
    }

    #[test]
    fn every_marked_load_gets_its_fields_offset_and_no_other_load_changes() {
        let offsets: Offsets =
            ALL.iter().enumerate().map(|(at, field)| (field.global, 3 * at as u64)).collect();
        let original = object();
        let (marks, others) = loads(&original);
        assert!(marks.len() > ALL.len(), "{} loads", marks.len());
        let mut object = original.clone();
        apply(&mut object, &offsets).unwrap();
        let (left, all) = loads(&object);
        assert_eq!((left.len(), all.len()), (0, marks.len() + others.len()));
        let sum = |offsets: &[i16]| offsets.iter().map(|offset| i64::from(*offset)).sum::<i64>();
        let moved: i64 = marks.iter().map(|mark| 3 * i64::from(mark - FIRST_MARK)).sum();
        assert_eq!(sum(&all), sum(&others) + moved);
        let changed = object.iter().zip(&original).filter(|(new, old)| new != old).count();
        assert!(changed <= 2 * marks.len());
    }

    #[test]
    fn a_field_that_the_kernel_lacks_cannot_be_loaded() {
        let original = object();
        let mut object = original.clone();
        let marks = loads(&object).0.len();
        apply(&mut object, &Offsets::new()).unwrap();
        let refused = loads(&object).1.iter().filter(|offset| **offset == REFUSED).count();
        assert_eq!(refused, marks);
        let far = ALL.iter().map(|field| (field.global, 40_000)).collect();
        assert!(apply(&mut original.clone(), &far).is_err());
        assert!(apply(&mut [0; 64], &Offsets::new()).is_err());
    }
}
