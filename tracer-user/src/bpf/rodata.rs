//! The read-only globals of loaded programs, read back from the kernel: what is in force, whoever
//! loaded them.

use anyhow::{Context, Result, ensure};
use aya::maps::Map;
use object::{Object, ObjectSymbol, read::elf::ElfFile64};

use super::lookup;

/// Name of the map that holds them.
pub const RODATA: &str = ".rodata";

/// Value of the global `name` in `rodata`, the map [`RODATA`] of programs loaded from `object`, pinned or
/// our own. It says nothing of programs that another object gave: its globals lie elsewhere.
///
/// # Errors
/// When the object has no such global of 64 bits, or the kernel refuses to read the map.
pub fn read_global(rodata: &Map, object: &[u8], name: &str) -> Result<u64> {
    let bytes = lookup::read(rodata).context("cannot read the globals")?;
    let at = offset(object, name)?;
    let value = bytes.get(at..at + size_of::<u64>()).and_then(|word| word.try_into().ok());
    Ok(u64::from_ne_bytes(value.with_context(|| format!("global {name} is past the loaded ones"))?))
}

/// Where `name` lies in the object's read-only data.
fn offset(object: &[u8], name: &str) -> Result<usize> {
    let elf = ElfFile64::<object::Endianness>::parse(object).context("the BPF object is no ELF")?;
    let symbol = elf.symbols().find(|symbol| symbol.name() == Ok(name));
    let symbol = symbol.with_context(|| format!("the BPF object has no global {name}"))?;
    ensure!(symbol.size() == size_of::<u64>() as u64, "global {name} has not 64 bits");
    Ok(symbol.address() as usize)
}

#[cfg(test)]
mod tests {
    use tracer_ebpf::settings::{MINOR_LATENCY_EVERY, TASKS_IN_V1};

    use super::*;
    use crate::bpf::tests::object;

    #[test]
    fn the_object_names_its_globals() {
        let object = object();
        let places = [MINOR_LATENCY_EVERY, TASKS_IN_V1].map(|name| offset(&object, name).unwrap());
        assert!(places[0].abs_diff(places[1]) >= 8 && places.iter().all(|at| at % 8 == 0));
        assert!(offset(&object, "NO_SUCH_GLOBAL").is_err());
        assert!(offset(b"\x7fELF", MINOR_LATENCY_EVERY).is_err());
    }
}
