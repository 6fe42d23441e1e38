//! How much stack the programs take. A function's own is 512 bytes at most, and so are those of callers and called
//! together, each rounded up to 32 as the verifiers of older kernels do: what a newer one takes may be refused there.

use std::collections::BTreeMap;

use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionIndex, SectionKind,
    SymbolKind, read::elf::ElfFile64,
};

const MOST_BYTES: u64 = 512;
const ROUNDED_TO: u64 = 32;
/// The register that points to the end of the stack.
const STACK: u8 = 10;

/// A function by its section and its place in there.
type Place = (usize, u64);

/// A function's own stack, and whom it calls.
#[derive(Default)]
struct Function {
    name: String,
    bytes: u64,
    calls: Vec<Place>,
}

/// The functions of `object`.
fn functions(object: &[u8]) -> BTreeMap<Place, Function> {
    let elf = ElfFile64::<Endianness>::parse(object).unwrap();
    let mut all = BTreeMap::new();
    for symbol in elf.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text) {
        let section = elf.section_by_index(symbol.section_index().unwrap()).unwrap();
        if section.kind() != SectionKind::Text {
            continue;
        }
        let targets: BTreeMap<u64, (Option<SectionIndex>, u64)> = section
            .relocations()
            .filter_map(|(at, relocation)| {
                let RelocationTarget::Symbol(index) = relocation.target() else { return None };
                let target = elf.symbol_by_index(index).unwrap();
                Some((at, (target.section_index(), target.address())))
            })
            .collect();
        let (begin, end) = (symbol.address() as usize, (symbol.address() + symbol.size()) as usize);
        let mut function =
            Function { name: symbol.name().unwrap().to_owned(), ..Function::default() };
        let mut copy_of_stack = None;
        for (number, code) in section.data().unwrap()[begin..end].chunks_exact(8).enumerate() {
            let at = (begin + 8 * number) as u64;
            let (to, from) = (code[1] & 15, code[1] >> 4);
            let offset = i64::from(i16::from_le_bytes([code[2], code[3]]));
            let value = i64::from(i32::from_le_bytes([code[4], code[5], code[6], code[7]]));
            let depth = match code[0] & 7 {
                1 if from == STACK => -offset,
                2 | 3 if to == STACK => -offset,
                _ if code[0] == 0x07 && copy_of_stack == Some(to) => -value,
                _ => 0,
            };
            function.bytes = function.bytes.max(u64::try_from(depth).unwrap_or(0));
            copy_of_stack = (code[0] == 0xbf && from == STACK).then_some(to);
            if code[0] == 0x85 && from == 1 {
                let (target, base) =
                    targets.get(&at).copied().unwrap_or((Some(section.index()), at));
                // Of a section's symbol the value says where in it, of a function's it is -1.
                let place = (base as i64 + 8 * (value + 1)) as u64;
                function.calls.push((target.unwrap().0, place));
            }
        }
        all.insert((section.index().0, symbol.address()), function);
    }
    all
}

/// The stack of the function at `place` and of all whom it calls.
fn together(all: &BTreeMap<Place, Function>, place: Place) -> u64 {
    let function = all.get(&place).unwrap_or_else(|| panic!("no function at {place:?}"));
    let called = function.calls.iter().map(|call| together(all, *call)).max().unwrap_or(0);
    function.bytes.max(1).next_multiple_of(ROUNDED_TO) + called
}

#[test]
fn stacks_fit_the_verifiers_that_round_them_up() {
    for object in ["always", "io"] {
        let path = format!("{}/../tracer-ebpf/object/{object}.bpf.o", env!("CARGO_MANIFEST_DIR"));
        let all = functions(&std::fs::read(path).unwrap());
        assert!(all.values().any(|function| !function.calls.is_empty()), "{object}: no calls");
        assert!(all.values().any(|function| function.bytes > 64), "{object}: no stacks");
        for (place, function) in &all {
            let bytes = together(&all, *place);
            assert!(bytes <= MOST_BYTES, "{object}: {} takes {bytes} bytes", function.name);
        }
    }
}
