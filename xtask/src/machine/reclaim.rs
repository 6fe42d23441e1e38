//! Whether the kernel pages out by itself what nobody has used for a while, with memory to spare: what ran
//! a minute ago is then read from the disk again, and measured with it. Reads sysfs; changes nothing.

use std::fs;
use std::path::Path;

/// DAMON's threads, `N` each, and in it what each is told to do with the memory it finds.
const KDAMONDS: &str = "kernel/mm/damon/admin/kdamonds";
/// The same as a module of its own, which has no such folder.
const MODULE: &str = "module/damon_reclaim/parameters/enabled";

/// What pages out here, in words, or `None`; also where this kernel has no DAMON.
pub fn describe() -> Option<String> {
    read(Path::new("/sys"))
}

fn read(sys: &Path) -> Option<String> {
    let mut found: Vec<String> = numbered(&sys.join(KDAMONDS))
        .filter(|kdamond| text(&kdamond.join("state")) == "on" && pages_out(kdamond))
        .map(|kdamond| format!("kdamond {}", kdamond.file_name().unwrap_or_default().display()))
        .collect();
    if text(&sys.join(MODULE)) == "Y" {
        found.push("damon_reclaim".to_owned());
    }
    found.sort();
    let by = found.join(", ");
    (!by.is_empty()).then(|| format!("the kernel pages out what is idle (DAMON: {by})"))
}

/// Whether a scheme of any of its contexts does.
fn pages_out(kdamond: &Path) -> bool {
    let schemes =
        numbered(&kdamond.join("contexts")).flat_map(|context| numbered(&context.join("schemes")));
    schemes.map(|scheme| text(&scheme.join("action"))).any(|action| action == "pageout")
}

/// The folders in `folder` whose names are numbers.
fn numbered(folder: &Path) -> impl Iterator<Item = std::path::PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_number = |name: &std::ffi::OsStr| name.to_string_lossy().parse::<u32>().is_ok();
    entries.filter(move |entry| is_number(&entry.file_name())).map(|entry| entry.path())
}

fn text(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(file: &Path, line: &str) {
        fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
        fs::write(file, format!("{line}\n")).expect("a file");
    }

    #[test]
    fn only_what_runs_and_pages_out_is_told() {
        let sys = tempfile::tempdir().expect("a folder");
        let set = |kdamond: &str, state: &str, action: &str| {
            let kdamond = sys.path().join(KDAMONDS).join(kdamond);
            write(&kdamond.join("state"), state);
            write(&kdamond.join("contexts/nr_contexts"), "1");
            write(&kdamond.join("contexts/0/schemes/0/action"), action);
        };
        let said = || read(sys.path());
        assert_eq!(said(), None);
        set("0", "off", "pageout");
        set("1", "on", "stat");
        write(&sys.path().join(MODULE), "N");
        assert_eq!(said(), None);
        set("2", "on", "pageout");
        write(&sys.path().join(MODULE), "Y");
        let both = said().expect("two of them do");
        assert!(both.ends_with("(DAMON: damon_reclaim, kdamond 2)"), "{both}");
    }
}
