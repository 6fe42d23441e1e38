//! Programs in the kernel: from its types to loaded and attached programs, pinned or not, and the ways into
//! their maps. What they count is their set's matter: here nobody knows slots or jobs, and which object,
//! hooks and values of globals there are comes as an argument.

pub mod attach;
pub mod btf;
pub mod error;
pub mod fdinfo;
pub mod globals;
pub mod hook;
pub mod load;
pub mod log;
pub mod lookup;
pub mod memlock;
pub mod offsets;
pub mod pins;
pub mod privileges;
pub mod programs;
pub mod rodata;
pub mod set;
pub mod statistics;
pub mod words;

#[cfg(test)]
mod tests {
    /// A real object: that of the programs that always run.
    pub fn object() -> Vec<u8> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tracer-ebpf/object/always.bpf.o");
        std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}
