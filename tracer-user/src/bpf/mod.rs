//! Programs in the kernel: from its types to loaded and attached programs, pinned or not, and the ways into
//! their maps. What they count is their set's matter: here nobody knows slots or jobs, and which object,
//! hooks and values of globals there are comes as an argument.

pub(crate) mod attach;
pub(crate) mod batch;
pub mod btf;
pub mod error;
pub mod fdinfo;
pub(crate) mod globals;
pub mod hook;
pub(crate) mod kernel_calls;
pub(crate) mod load;
mod loader;
pub(crate) mod log;
pub(crate) mod lookup;
pub(crate) mod maps;
pub(crate) mod memlock;
pub(crate) mod offsets;
pub(crate) mod pins;
pub(crate) mod preemption;
pub mod privileges;
pub(crate) mod programs;
pub(crate) mod ring;
pub(crate) mod rodata;
pub(crate) mod set;
#[cfg(test)]
mod stacks;
pub(crate) mod statistics;
pub(crate) mod type_ids;
pub(crate) mod verify;
pub(crate) mod words;

#[cfg(test)]
mod tests {
    /// A real object: that of the programs that always run.
    pub fn object() -> Vec<u8> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tracer-ebpf/object/always.bpf.o");
        std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}
