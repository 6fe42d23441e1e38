//! The summary as people see it: each fixture against its text in this folder, and what must hold for
//! any run at any width.
//!
//! After a wanted change: `BLESS=1 cargo test -p jobtrace --test summary` writes the texts anew; read
//! their diff before committing it.

mod advice;
mod causes;
mod cpus;
mod fixtures;
mod pages;
mod properties;
mod reports;
mod rules;
mod sentences;
mod tables;
mod ten_lines;
mod told;

use std::{fs, path::PathBuf};

use jobtrace::{
    model::totals::RunTotals,
    view::{Style, render},
};

/// Name of the text, the run and the style it is shown in.
fn cases() -> Vec<(&'static str, RunTotals, Style)> {
    let usual = Style { width: 80, color: false, unicode: true };
    let narrow = Style { width: 40, ..usual };
    let wide = Style { width: 200, ..usual };
    let ascii = Style { unicode: false, ..usual };
    let color = Style { color: true, ..usual };
    vec![
        ("cpu_bound", fixtures::cpu_bound(), usual),
        ("serial", fixtures::serial(), usual),
        ("io_bound", fixtures::io_bound(), usual),
        ("io_bound_narrow", fixtures::io_bound(), narrow),
        ("io_bound_wide", fixtures::io_bound(), wide),
        ("io_bound_ascii", fixtures::io_bound(), ascii),
        ("io_bound_color", fixtures::io_bound(), color),
        ("network", fixtures::network(), usual),
        ("network_fs", fixtures::network_fs(), usual),
        ("unknown_disks", fixtures::unknown_disks(), usual),
        ("unknown_write_back", fixtures::unknown_write_back(), usual),
        ("network_fs_named", fixtures::waits::network_fs_named(), usual),
        ("workers_wait", fixtures::waits::workers_wait(), usual),
        ("mpi_poll", fixtures::waits::mpi_poll(), usual),
        ("poll_helper", fixtures::waits::poll_helper(), usual),
        ("locks", fixtures::waits::locks(), usual),
        ("fsync_each", fixtures::waits::fsync_each(), usual),
        ("metadata_remote", fixtures::waits::metadata_remote(), usual),
        ("metadata_unnamed", fixtures::waits::metadata_unnamed(), usual),
        ("memory_maps", fixtures::waits::memory_maps(), usual),
        ("vfork", fixtures::waits::vfork(), usual),
        ("ring", fixtures::waits::ring(), usual),
        ("fuse_asleep", fixtures::waits::fuse_asleep(), usual),
        ("network_fs_narrow", fixtures::waits::network_fs_named(), narrow),
        ("file_ops", fixtures::file_ops::small_files(), usual),
        ("file_ops_narrow", fixtures::file_ops::small_files(), Style { unicode: false, ..narrow }),
        ("files", fixtures::file_ops::named(), usual),
        ("files_narrow", fixtures::file_ops::named(), Style { unicode: false, ..narrow }),
        ("file_ops_cached", fixtures::file_ops::cached(), usual),
        ("file_servers", fixtures::file_ops::with_servers(), usual),
        ("file_ops_many", fixtures::file_ops::many_mounts(), usual),
        ("one_reading", fixtures::one_reading(), usual),
        ("oversubscribed", fixtures::oversubscribed(), usual),
        ("throttled", fixtures::throttled(), usual),
        ("pinned", fixtures::pinned(), usual),
        ("beside_others", fixtures::beside_others(), usual),
        ("short_programs", fixtures::short_programs(), usual),
        ("mapped", fixtures::mapped(), usual),
        ("large_writes", fixtures::large_writes(), usual),
        ("fsync_beside_others", fixtures::fsync_beside_others(), usual),
        ("few_cores", fixtures::few_cores(), usual),
        ("sleeper", fixtures::sleeper(), usual),
        ("hardly", fixtures::hardly(), usual),
        ("thrash", fixtures::thrash(), usual),
        ("first_touch", fixtures::first_touch(), usual),
        ("gpu", fixtures::gpus::gpu(), usual),
        ("idle_gpus", fixtures::gpus::idle_gpus(), usual),
        ("starved_gpu", fixtures::gpus::starved_gpu(), usual),
        ("gpu_far_files", fixtures::waits::gpu_far_files(), usual),
        ("gpu_messages", fixtures::waits::gpu_messages(), usual),
        ("gpus_held", fixtures::gpus::gpus_held(), usual),
        ("unknown", fixtures::unknown(), usual),
        ("short", fixtures::short(), usual),
        ("killed", fixtures::killed(), usual),
        ("killed_by_node", fixtures::killed_by_node(), usual),
        ("hostile", fixtures::hostile(), usual),
        ("hostile_narrow_ascii", fixtures::hostile(), Style { unicode: false, ..narrow }),
    ]
}

#[test]
fn summaries_read_as_agreed() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/summary");
    let bless = std::env::var_os("BLESS").is_some();
    let mut differ = Vec::new();
    for (name, totals, style) in cases() {
        let path = folder.join(format!("{name}.txt"));
        let text = render(&totals, &style);
        if bless {
            fs::write(&path, &text).expect("the folder of the texts can be written");
        } else if fs::read_to_string(&path).ok().as_deref() != Some(&*text) {
            differ.push(format!("{name}:\n{text}"));
        }
    }
    assert!(differ.is_empty(), "not as in tests/summary:\n{}", differ.join("\n"));
}
