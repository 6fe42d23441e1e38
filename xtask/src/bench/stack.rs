//! How much of the BPF stack a program takes, from the object itself: the kernel tells it in the
//! verifier's log only.

use anyhow::{Context, Result};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionKind};
use object::{SymbolKind, read::elf::ElfFile64};
use std::collections::BTreeMap;

const INSTRUCTION_BYTES: u64 = 8;
const FRAME_POINTER: u8 = 10;

/// A function, by its section and where it begins there.
type Place = (usize, u64);

/// One function of the object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Function {
    name: String,
    /// Bytes of its own frame.
    frame: u64,
    calls: Vec<Place>,
}

/// Bytes of stack of each program in `object`, its deepest chain of calls added up, each frame
/// rounded up as the verifier does.
///
/// # Errors
/// When the object is no ELF of BPF programs.
pub fn depths(object: &[u8]) -> Result<BTreeMap<String, u64>> {
    let functions = functions(object)?;
    let depth = |place| Some((functions.get(place)?.name.clone(), depth(&functions, place)));
    Ok(functions.keys().filter_map(depth).collect())
}

fn depth(functions: &BTreeMap<Place, Function>, place: &Place) -> u64 {
    let Some(function) = functions.get(place) else { return 0 };
    let below = function.calls.iter().filter(|called| *called != place);
    let below = below.map(|called| depth(functions, called)).max().unwrap_or(0);
    // Frames are aligned to 16 bytes where programs are compiled.
    function.frame.max(1).next_multiple_of(16) + below
}

fn functions(object: &[u8]) -> Result<BTreeMap<Place, Function>> {
    let elf = ElfFile64::<object::Endianness>::parse(object).context("the BPF object is no ELF")?;
    let mut functions = BTreeMap::new();
    for symbol in elf.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text) {
        let Some(index) = symbol.section_index() else { continue };
        let section = elf.section_by_index(index)?;
        if section.kind() != SectionKind::Text || symbol.size() == 0 {
            continue;
        }
        let range = symbol.address()..symbol.address() + symbol.size();
        let code = section.data_range(range.start, symbol.size())?;
        let code = code.context("a function of the BPF object is past its section")?;
        let mut function = Function {
            name: symbol.name()?.to_owned(),
            frame: frame(code),
            calls: calls(code, (index.0, range.start)),
        };
        for (at, relocation) in section.relocations().filter(|(at, _)| range.contains(at)) {
            let code = &code[(at - range.start) as usize..];
            let RelocationTarget::Symbol(target) = relocation.target() else { continue };
            let target = elf.symbol_by_index(target)?;
            if let (true, Some(section)) = (is_call(code), target.section_index()) {
                // Of a section's symbol the instruction holds the function's place, less one.
                let inside = match target.kind() {
                    SymbolKind::Section => {
                        (i64::from(immediate(code)) + 1) as u64 * INSTRUCTION_BYTES
                    }
                    _ => target.address(),
                };
                function.calls.push((section.0, inside));
            }
        }
        functions.insert((index.0, range.start), function);
    }
    Ok(functions)
}

/// A call of another function of the object.
fn is_call(code: &[u8]) -> bool {
    code[0] == 0x85 && code[1] >> 4 == 1
}

fn immediate(code: &[u8]) -> i32 {
    i32::from_le_bytes([code[4], code[5], code[6], code[7]])
}

/// Functions that `code`, which begins at `place`, calls in its own section.
fn calls(code: &[u8], place: Place) -> Vec<Place> {
    let mut calls = Vec::new();
    for (at, instruction) in code.chunks_exact(INSTRUCTION_BYTES as usize).enumerate() {
        if is_call(instruction) && immediate(instruction) != -1 {
            let next = place.1 as i64 + (at as i64 + 1) * INSTRUCTION_BYTES as i64;
            let target = next + i64::from(immediate(instruction)) * INSTRUCTION_BYTES as i64;
            calls.push((place.0, target as u64));
        }
    }
    calls
}

/// How far below the frame pointer `code` reaches.
fn frame(code: &[u8]) -> u64 {
    let mut deepest = 0_i64;
    // Registers that were made a copy of the frame pointer last.
    let mut copies = [false; 16];
    for instruction in code.chunks_exact(INSTRUCTION_BYTES as usize) {
        let (code, target, source) = (instruction[0], instruction[1] & 15, instruction[1] >> 4);
        let offset = i64::from(i16::from_le_bytes([instruction[2], instruction[3]]));
        match code & 7 {
            // Loads; stores of an immediate and of a register.
            1 if source == FRAME_POINTER => deepest = deepest.min(offset),
            2 | 3 if target == FRAME_POINTER => deepest = deepest.min(offset),
            // 64-bit arithmetic: a register's copy, an immediate added.
            7 if code == 0xbf => {
                copies[usize::from(target)] = source == FRAME_POINTER;
                continue;
            }
            7 if code == 0x07 && copies[usize::from(target)] => {
                deepest = deepest.min(immediate(instruction).into());
            }
            _ => {}
        }
        if matches!(code & 7, 0 | 1 | 4 | 7) {
            copies[usize::from(target)] = false;
        }
    }
    deepest.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_reaches_as_far_as_its_deepest_use() {
        let store = [0x7b, 0x1a, 0xf0, 0xff, 0, 0, 0, 0]; // *(u64 *)(r10 - 16) = r1
        let copy = [0xbf, 0xa2, 0, 0, 0, 0, 0, 0]; // r2 = r10
        let add = [0x07, 0x02, 0, 0, 0xd8, 0xff, 0xff, 0xff]; // r2 += -40
        let far = [0x79, 0x21, 0x00, 0xff, 0, 0, 0, 0]; // r1 = *(u64 *)(r2 - 256)
        assert_eq!(frame(&store), 16);
        assert_eq!(frame(&[store, copy, add].concat()), 40);
        assert_eq!(frame(&[store, far, add].concat()), 16, "r2 is no copy");
        assert_eq!(frame(&[]), 0);
    }

    #[test]
    fn our_programs_fit_the_kernels_stack() {
        let path = xtask::root().join(xtask::source_digest::ALWAYS.file);
        let depths = depths(&std::fs::read(path).unwrap()).unwrap();
        for program in ["sched_switch", "block_rq_complete", "cgroup_mkdir"] {
            assert!((16..=512).contains(&depths[program]), "{program}: {}", depths[program]);
        }
        // What it calls is added to its own.
        assert!(depths["sched_switch"] > 80, "{}", depths["sched_switch"]);
    }
}
