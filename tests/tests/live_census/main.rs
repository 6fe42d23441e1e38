//! Live ring: the census of software against programs that know what they run: made packages, their own maps, counted
//! copies. Everything is exact; the same beside the job must not be told.

mod agent;
mod burst;
mod hung;
mod killed;
mod looked;
mod made;
mod maps;
mod off;
mod packages;
mod programs;
mod pypi;
mod real;
mod room;
mod site;
mod watch;
