//! From an object to maps and programs that are ready to be loaded, where this process may load any.

use anyhow::{Result, anyhow};
use aya::Ebpf;

use super::{
    error::{LoadError, with_causes},
    globals::Globals,
    kernel_calls::KernelCalls,
    loader::loader,
    offsets::{self, Offsets},
    privileges::{is_in_namespace, lacking_capabilities},
};
use crate::base::open_files;

/// Refuses where the kernel would not let this process load programs.
///
/// # Errors
/// Says what is lacking, and the cure.
pub fn check_allowed() -> Result<(), LoadError> {
    check_namespace()?;
    open_files::check().map_err(LoadError::OpenFiles)?;
    match lacking_capabilities().filter(|lacking| !lacking.is_empty()) {
        Some(lacking) => Err(LoadError::Capabilities(lacking)),
        None => Ok(()),
    }
}

/// Refuses to trace in a user namespace.
///
/// # Errors
/// When it is one.
pub fn check_namespace() -> Result<(), LoadError> {
    if is_in_namespace() { Err(LoadError::Namespace) } else { Ok(()) }
}

/// An object, and what is set in it before the kernel sees it.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// The object.
    pub object: &'a [u8],
    /// Values of its read-only globals.
    pub globals: &'a Globals,
    /// Offsets of the kernel's fields.
    pub offsets: &'a Offsets,
    /// The kernel's functions that its programs call.
    pub calls: KernelCalls,
    /// Maps that get another number of entries than the object says.
    pub entries: &'a [(&'static str, u32)],
    /// Values of its read-only tables, by the names of their globals.
    pub tables: &'a [(&'static str, &'a [u16])],
    /// Log level of the programs' rare warnings: 0 is off.
    pub log_level: u8,
}

/// Creates the maps and prepares the programs.
///
/// # Errors
/// When the object is damaged, or the kernel refuses a map.
pub fn create(plan: &Plan<'_>) -> Result<Ebpf> {
    let mut loader = loader();
    for (name, value) in plan.globals {
        loader.override_global(name, value, true);
    }
    for (name, table) in plan.tables {
        loader.override_global(name, *table, true);
    }
    loader.override_global("AYA_LOG_LEVEL", &plan.log_level, false);
    if plan.log_level == 0 {
        loader.map_max_entries("AYA_LOGS", rustix::param::page_size() as u32);
    }
    for (map, entries) in plan.entries {
        loader.map_max_entries(map, *entries);
    }
    let mut object = plan.object.to_vec();
    offsets::apply(&mut object, plan.offsets)?;
    plan.calls.apply(&mut object)?;
    loader.load(&object).map_err(|error| anyhow!("{}", with_causes(&error)))
}
