//! Which job a cgroup or a process belongs to, and by which rule.

mod site;

pub use site::SiteRule;
