//! Man pages and shell completions, from the command line's definition.

use crate::process::{relative, say};
use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use flate2::{Compression, GzBuilder};
use jobtrace::cli::Cli;
use std::fs;
use std::io::Write;
use std::path::Path;

/// The shells that packages bring completions for.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Writes `man/*.1.gz` and `completions/*` below `dist`, and nothing else stays in these folders.
///
/// # Errors
/// When a file cannot be written.
pub fn write(dist: &Path) -> Result<()> {
    let (man, completions) = (dist.join("man"), dist.join("completions"));
    for folder in [&man, &completions] {
        super::empty(folder)?;
    }
    let mut command = Cli::command();
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut command, "jobtrace", &completions)
            .with_context(|| format!("write the completions of {shell}"))?;
    }
    clap_mangen::generate_to(Cli::command(), &man).context("write the man pages")?;
    for entry in fs::read_dir(&man)? {
        compress(&entry?.path())?;
    }
    say(format_args!("wrote {} and {}", relative(&man), relative(&completions)));
    Ok(())
}

/// Replaces a file by its gzip; without a time stamp, so that the same text gives the same bytes.
fn compress(file: &Path) -> Result<()> {
    let text = fs::read(file)?;
    let mut gz = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    gz.write_all(&text)?;
    let mut name = file.as_os_str().to_owned();
    name.push(".gz");
    fs::write(&name, gz.finish()?)?;
    fs::remove_file(file).with_context(|| format!("replace {}", relative(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_command_has_its_page_and_its_completions() {
        let dist = tempfile::tempdir().expect("a scratch folder");
        write(dist.path()).expect("written");
        let command = Cli::command();
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        for name in visible.map(clap::Command::get_name) {
            let page = dist.path().join(format!("man/jobtrace-{name}.1.gz"));
            assert!(page.is_file(), "{}", page.display());
        }
        assert!(dist.path().join("man/jobtrace.1.gz").is_file());
        for file in ["jobtrace.bash", "_jobtrace", "jobtrace.fish"] {
            let text = fs::read_to_string(dist.path().join("completions").join(file)).expect(file);
            assert!(text.contains("print-config"), "{file}");
        }
    }
}
