//! The kernel's own functions, written into the programs' calls that stand for them.

use anyhow::Result;
use tracer_ebpf::{
    kernel_calls::{ALL, CAST, HOLD, RELEASE},
    settings::{
        CAST_TO_FILE, CAST_TO_INODE, CAST_TO_LIST, CAST_TO_SUPER, CAST_TO_WORDS, HOLDS_CPU,
    },
};

use super::{btf::Btf, globals::Globals, offsets::programs, preemption::interrupts_programs};

/// The types that addresses are given.
const TYPES: [(&str, &str); 5] = [
    (CAST_TO_LIST, "list_head"),
    (CAST_TO_FILE, "file"),
    (CAST_TO_INODE, "inode"),
    (CAST_TO_SUPER, "super_block"),
    (CAST_TO_WORDS, "cpumask"),
];
const INSTRUCTION_BYTES: usize = 8;
/// BPF_JMP | BPF_CALL, and what its second byte says is called: one of the kernel's functions by its type's number
/// (`BPF_PSEUDO_KFUNC_CALL`).
const CALL: u8 = 0x85;
const KERNELS: u8 = 2 << 4;
/// A helper that no kernel has (`BPF_FUNC_unspec`): the verifier refuses the program that would call it.
const REFUSED: i32 = 0;

/// Numbers of the functions' types, in the order of [`ALL`]; `None` of what no program calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelCalls([Option<i32>; ALL.len()]);

impl KernelCalls {
    /// Those that this kernel has; says in their globals which the programs may call.
    pub fn find(btf: &Btf, globals: &mut Globals) -> Self {
        let mut calls = Self::known(btf);
        let numbers: Option<Vec<_>> = TYPES.iter().map(|(_, name)| btf.struct_id(name)).collect();
        let numbers = numbers.filter(|_| calls.of(CAST).is_some());
        for (at, (global, _)) in TYPES.iter().enumerate() {
            globals.insert(global, numbers.as_ref().map_or(0, |numbers| numbers[at] as u64));
        }
        if numbers.is_none() {
            calls.forget(CAST);
        }
        let holds = calls.of(HOLD).is_some() && calls.of(RELEASE).is_some();
        globals.insert(HOLDS_CPU, (holds && interrupts_programs()).into());
        calls
    }

    /// Those that this kernel has.
    fn known(btf: &Btf) -> Self {
        Self(ALL.map(|(name, _)| btf.function_id(name).and_then(|id| i32::try_from(id).ok())))
    }

    fn of(&self, mark: i32) -> Option<i32> {
        ALL.iter().zip(self.0).find(|((_, of), _)| *of == mark)?.1
    }

    fn forget(&mut self, mark: i32) {
        let found = ALL.iter().zip(&mut self.0).find(|((_, of), _)| *of == mark);
        found.into_iter().for_each(|(_, number)| *number = None);
    }

    /// Writes the functions into the calls of `object` that stand for them, or, of those that are not there, what no
    /// program may run.
    ///
    /// # Errors
    /// When the object is no ELF.
    pub fn apply(&self, object: &mut [u8]) -> Result<()> {
        for range in programs(object)? {
            let Some(program) = object.get_mut(range) else { continue };
            for instruction in program.chunks_exact_mut(INSTRUCTION_BYTES) {
                let [CALL, 0, 0, 0, a, b, c, d] = *instruction else { continue };
                let mark = i32::from_ne_bytes([a, b, c, d]);
                if ALL.iter().all(|(_, of)| *of != mark) {
                    continue;
                }
                let function = self.of(mark);
                instruction[1] = if function.is_some() { KERNELS } else { 0 };
                instruction[4..].copy_from_slice(&function.unwrap_or(REFUSED).to_ne_bytes());
            }
        }
        Ok(())
    }
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
    fn each_call_that_stands_for_a_function_is_one_of_it_and_no_other_changes() {
        let objects = ["io", "census"].map(|name| {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tracer-ebpf/object");
            std::fs::read(format!("{folder}/{name}.bpf.o")).unwrap()
        });
        let all: Vec<_> = objects.iter().flat_map(|object| calls(object)).collect();
        for (_, mark) in ALL {
            assert!(all.contains(&(0, mark)), "nothing calls {mark:x}");
        }
        let some = [Some(77), None, Some(79), Some(80), None, Some(82)];
        let functions = [KernelCalls(some), KernelCalls::default()];
        for (functions, original) in
            functions.iter().flat_map(|functions| objects.iter().map(move |of| (functions, of)))
        {
            let mut object = original.clone();
            functions.apply(&mut object).unwrap();
            let expected: Vec<_> = calls(original)
                .iter()
                .map(|call| match ALL.iter().any(|(_, mark)| *call == (0, *mark)) {
                    true => functions.of(call.1).map_or((0, REFUSED), |number| (KERNELS, number)),
                    false => *call,
                })
                .collect();
            assert_eq!(calls(&object), expected);
        }
        assert!(KernelCalls::default().apply(&mut [0; 64]).is_err());
    }
}
