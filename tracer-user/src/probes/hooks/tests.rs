//! The rows against the tables of fields, and against what the programs in the object read.

use std::collections::{BTreeMap, BTreeSet};

use object::{
    Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionKind, SymbolKind,
    read::elf::ElfFile64,
};
use tracer_ebpf::kernel_fields::{self, FIRST_MARK};

use super::*;
use crate::{
    bpf::hook::Point,
    model::tables::{BLOCK, FAULT, NET, SCHED, WAIT},
    probes::{
        needs::{CALLS_NEED, FILES_NEED, TIMES_NEED},
        options::OBJECT,
    },
};

#[test]
fn each_program_has_one_row() {
    let programs: BTreeSet<_> = HOOKS.iter().map(|row| row.hook.program).collect();
    assert_eq!(programs.len(), HOOKS.len());
}

#[test]
fn sched_switch_alone_is_required() {
    let required = HOOKS.iter().filter(|row| row.hook.group == REQUIRED_GROUP);
    for row in required {
        assert!(matches!(row.hook.point, Point::Tracepoint("sched_switch", _)), "{row:?}");
    }
}

#[test]
fn what_is_covered_is_a_group() {
    for covered in HOOKS.iter().flat_map(|row| row.hook.covers).copied() {
        assert!(HOOKS.iter().any(|row| row.hook.group == covered), "{covered}");
    }
}

#[test]
fn every_field_of_the_probes_is_of_one_family() {
    let mut given: Vec<_> = Family::ALL.into_iter().flat_map(Family::fields).collect();
    let fields =
        [&SCHED, &FAULT, &NET].into_iter().flat_map(|table| table.fields).map(|field| field.name);
    let mut fields: Vec<_> = fields.chain([BLOCK.name, WAIT.name]).collect();
    given.sort_unstable();
    fields.sort_unstable();
    assert_eq!(given, fields);
}

#[test]
fn every_program_of_the_object_has_its_row() {
    let code = Code::read(OBJECT);
    let programs = code.programs.keys().map(String::as_str);
    // Those of `jobtrace bench-empty` do nothing.
    let programs: BTreeSet<_> = programs.filter(|name| !name.starts_with("empty_")).collect();
    assert_eq!(programs, HOOKS.iter().map(|row| row.hook.program).collect());
}

/// Fields that a program asks for before it loads them, so that it does without: `has`, `times_known` and
/// the like in the programs.
const ASKED_FOR: [&str; 11] = [
    "TASK_IN_USER_FAULT",
    "TASK_FROZEN",
    "CSS_SET_DFL_CGRP",
    "CSS_SET_SUBSYS",
    "CSS_CGROUP",
    "CGROUP_MEMORY",
    "MEMORY_PEAK",
    "REQUEST_DISK",
    "REQUEST_QUEUE",
    "QUEUE_DISK",
    "TCP_CONTROL_SEGMENTS",
];

#[test]
fn a_program_needs_what_it_loads_and_nothing_else() {
    let code = Code::read(OBJECT);
    for row in HOOKS {
        let loaded = code.fields(row.hook.program);
        let needed: BTreeSet<_> = row.hook.needs.iter().copied().collect();
        let program = row.hook.program;
        let without_asking = |field: &&&str| {
            let asked = [&ASKED_FOR[..], &TIMES_NEED, &CALLS_NEED, &FILES_NEED];
            !needed.contains(**field) && !asked.iter().any(|list| list.contains(field))
        };
        let forgotten: Vec<_> = loaded.iter().filter(without_asking).collect();
        assert!(forgotten.is_empty(), "{program} loads {forgotten:?}, which its row does not need");
        let idle: Vec<_> = needed.difference(&loaded).collect();
        assert!(idle.is_empty(), "{program} needs {idle:?}, which it does not load");
    }
}

/// A function's section and where it begins there.
type Place = (usize, u64);

/// The functions of an object: which kernel fields each loads, and which functions it calls.
struct Code {
    /// Functions that the kernel calls: all outside the section that they share.
    programs: BTreeMap<String, Place>,
    functions: BTreeMap<Place, (BTreeSet<&'static str>, Vec<Place>)>,
}

impl Code {
    fn read(object: &[u8]) -> Self {
        const INSTRUCTION_BYTES: usize = 8;
        let elf = ElfFile64::<object::Endianness>::parse(object).unwrap();
        let mut code = Self { programs: BTreeMap::new(), functions: BTreeMap::new() };
        for symbol in elf.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text) {
            let Some(index) = symbol.section_index() else { continue };
            let section = elf.section_by_index(index).unwrap();
            if section.kind() != SectionKind::Text || symbol.size() == 0 {
                continue;
            }
            let (begin, end) = (symbol.address(), symbol.address() + symbol.size());
            let bytes = section.data_range(begin, symbol.size()).unwrap().unwrap();
            let (mut loads, mut calls) = (BTreeSet::new(), Vec::new());
            for (number, instruction) in bytes.chunks_exact(INSTRUCTION_BYTES).enumerate() {
                let mark = i16::from_le_bytes([instruction[2], instruction[3]]);
                let word = i32::from_le_bytes(instruction[4..].try_into().unwrap());
                if instruction[0] & 7 == 1 && mark >= FIRST_MARK {
                    loads.insert(kernel_fields::ALL[(mark - FIRST_MARK) as usize].global);
                }
                // A call of a function of the same section, unless a relocation says otherwise below.
                if instruction[0] == 0x85 && instruction[1] >> 4 == 1 {
                    let next = begin as i64 + (number as i64 + 1) * INSTRUCTION_BYTES as i64;
                    let to = next + i64::from(word) * INSTRUCTION_BYTES as i64;
                    calls.push((index.0, to as u64));
                }
            }
            for (at, relocation) in
                section.relocations().filter(|(at, _)| (begin..end).contains(at))
            {
                let at = (at - begin) as usize;
                let RelocationTarget::Symbol(target) = relocation.target() else { continue };
                let target = elf.symbol_by_index(target).unwrap();
                let Some(of) = target.section_index().filter(|_| bytes[at] == 0x85) else {
                    continue;
                };
                let word = i32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap());
                // Of a section's own symbol the instruction holds the place in it.
                let offset = match target.kind() {
                    SymbolKind::Section => (i64::from(word) + 1) * INSTRUCTION_BYTES as i64,
                    _ => target.address() as i64,
                };
                calls.push((of.0, offset as u64));
            }
            if section.name() != Ok(".text") {
                code.programs.insert(symbol.name().unwrap().to_owned(), (index.0, begin));
            }
            code.functions.insert((index.0, begin), (loads, calls));
        }
        code
    }

    /// What `program` loads, the functions that it calls included.
    fn fields(&self, program: &str) -> BTreeSet<&'static str> {
        let (mut seen, mut found) = (BTreeSet::new(), BTreeSet::new());
        let mut next = vec![self.programs[program]];
        while let Some(place) = next.pop() {
            if let Some((loads, calls)) = self.functions.get(&place).filter(|_| seen.insert(place))
            {
                found.extend(loads);
                next.extend(calls);
            }
        }
        found
    }
}
