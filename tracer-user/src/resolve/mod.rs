//! Which job a cgroup or a process belongs to, and by which rule.
//!
//! The rules are one table (`table.rs`); applying them is pure (`resolver.rs`). What only a live process
//! tells is read apart (`process.rs`), and believed only where its cgroup says whose it is (`facts.rs`).

mod answer;
pub mod consent;
pub mod facts;
pub mod held;
mod path;
pub mod process;
mod resolver;
mod site;
pub mod sluid;
mod table;
mod variables;

pub use answer::{Answer, Role};
pub use resolver::Resolver;
pub use site::{SiteRule, unknown_manager};
