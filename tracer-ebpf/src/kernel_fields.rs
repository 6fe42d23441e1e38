//! Every kernel field the programs read, with the global through which its offset reaches them.
//!
//! rustc emits no CO-RE relocations: the agent looks each path up in the running kernel's BTF and
//! sets the global of that name before loading.
