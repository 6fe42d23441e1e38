//! Which software jobs run, as the kernel sees it: an object of its own beside what always runs, loaded where somebody
//! asks ([0030](../docs/decisions/0030-census.md)). Each thing is told once; here it is kept by lease.

mod event;
mod hooks;
mod load;
mod older;
mod read;
mod sighted;
mod wake;

pub use hooks::CENSUS_HOOKS;
pub use load::Room;
pub use read::Census;
pub use wake::Wake;
