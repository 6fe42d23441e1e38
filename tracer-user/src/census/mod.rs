//! Which software jobs run: names, versions and where they came from, of the paths that the kernel saw. Nothing of a
//! user's own is named (docs/PRIVACY.md).
//!
//! Pure but for `site.rs`, which reads the site's file, `listing.rs`, which reads what is installed in a folder, `apart.rs`,
//! which has that done by a process of its own, `lister.rs`, with a thread that nobody waits for longer than a deadline, and
//! `namer.rs`, the thread that names.
//!
//! Refuses: to see anything itself; to tell a path.

mod aliases;
mod apart;
mod lister;
pub(crate) mod listing;
mod namer;
pub(crate) mod naming;
mod place;
mod rows;
pub(crate) mod rules;
mod site;
pub(crate) mod soname;

pub use aliases::{candidates, normal};
pub use apart::{COMMAND, answer};
pub use namer::{Namer, Options};
pub use rows::{About, ROWS};
pub use site::{DEFAULT_FILE, Site, SiteRule, default_file};
