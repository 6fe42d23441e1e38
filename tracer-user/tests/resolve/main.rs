//! The resolver over tables of paths: real ones (cgroup_paths.tsv), and for each rule those of other
//! sites with near misses (other_sites.tsv).

mod processes;
mod properties;
mod site;
mod speed;
mod table;
