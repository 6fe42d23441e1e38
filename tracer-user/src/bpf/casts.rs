//! Types for addresses: the kernel's own function that gives them, written into the programs' calls.

use anyhow::Result;
use tracer_ebpf::{
    casts::CALL_MARK,
    settings::{CAST_TO_FILE, CAST_TO_INODE, CAST_TO_LIST, CAST_TO_SUPER},
};

use super::{btf::Btf, globals::Globals, offsets::programs};

/// The kernel's function, since 6.2.
const FUNCTION: &str = "bpf_rdonly_cast";
const TYPES: [(&str, &str); 4] = [
    (CAST_TO_LIST, "list_head"),
    (CAST_TO_FILE, "file"),
    (CAST_TO_INODE, "inode"),
    (CAST_TO_SUPER, "super_block"),
];
const INSTRUCTION_BYTES: usize = 8;
/// BPF_JMP | BPF_CALL, and what its second byte says is called: one of the kernel's functions by its type's number
/// (`BPF_PSEUDO_KFUNC_CALL`).
const CALL: u8 = 0x85;
const KERNELS: u8 = 2 << 4;
/// A helper that no kernel has (`BPF_FUNC_unspec`): the verifier refuses the program that would call it.
const REFUSED: i32 = 0;

/// Number of the type of the function by which this kernel gives types to addresses, with the numbers of these in their
/// globals; `None`, and zeros, where it lacks one of them.
pub fn find(btf: &Btf, globals: &mut Globals) -> Option<i32> {
    let numbers: Option<Vec<_>> = TYPES.iter().map(|(_, name)| btf.struct_id(name)).collect();
    let function = btf.function_id(FUNCTION).and_then(|id| i32::try_from(id).ok());
    let found = numbers.zip(function);
    for (at, (global, _)) in TYPES.iter().enumerate() {
        globals.insert(global, found.as_ref().map_or(0, |(numbers, _)| numbers[at] as u64));
    }
    found.map(|(_, function)| function)
}

/// Writes `function` into the calls of `object` that stand for it, or, where there is none, what no program may run.
///
/// # Errors
/// When the object is no ELF.
pub fn apply(object: &mut [u8], function: Option<i32>) -> Result<()> {
    for range in programs(object)? {
        let Some(program) = object.get_mut(range) else { continue };
        for instruction in program.chunks_exact_mut(INSTRUCTION_BYTES) {
            if instruction != stands_for() {
                continue;
            }
            instruction[1] = if function.is_some() { KERNELS } else { 0 };
            instruction[4..].copy_from_slice(&function.unwrap_or(REFUSED).to_ne_bytes());
        }
    }
    Ok(())
}

/// The call as it is built.
fn stands_for() -> [u8; INSTRUCTION_BYTES] {
    let [a, b, c, d] = CALL_MARK.to_ne_bytes();
    [CALL, 0, 0, 0, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Second byte and number of all calls of the object.
    fn calls(object: &[u8]) -> Vec<(u8, i32)> {
        let ranges = programs(object).unwrap().into_iter();
        let instructions = ranges.flat_map(|range| object[range].chunks_exact(INSTRUCTION_BYTES));
        let calls = instructions.filter(|instruction| instruction[0] == CALL);
        calls.map(|call| (call[1], i32::from_ne_bytes(call[4..].try_into().unwrap()))).collect()
    }

    #[test]
    fn each_call_that_stands_for_the_function_is_one_of_it_and_no_other_changes() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tracer-ebpf/object/io.bpf.o");
        let original = std::fs::read(path).unwrap();
        let before = calls(&original);
        let marks = before.iter().filter(|call| **call == (0, CALL_MARK)).count();
        assert!(marks > 4, "{marks} of {}", before.len());
        for (function, written) in [(Some(77), (KERNELS, 77)), (None, (0, REFUSED))] {
            let mut object = original.clone();
            apply(&mut object, function).unwrap();
            let expected: Vec<_> = before
                .iter()
                .map(|call| if *call == (0, CALL_MARK) { written } else { *call })
                .collect();
            assert_eq!(calls(&object), expected);
        }
        assert!(apply(&mut [0; 64], None).is_err());
    }
}
