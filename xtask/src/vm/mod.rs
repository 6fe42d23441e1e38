//! `cargo xtask vm`: jobtrace on other kernels. Boots each in an emulated machine, has a guest of ours
//! (`tests/src/bin/vm_guest`) load every program and hold every number against the kernel's own, and
//! prints what came of it.

mod arch;
mod emulator;
mod expected;
mod fetch;
mod initramfs;
mod kept;
mod kernels;
mod machine;
mod modules;
mod programs;
mod round;
mod sizes;
mod table;

use crate::packages;
use crate::process::{say, target_dir};
use anyhow::{Context, Result, bail};
use arch::Arch;
use initramfs::Contents;
use kept::Kept;
use kernels::Kernel;
use round::Round;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use table::Column;
use xtask::guest::Work;
use xtask::sections;

/// How long a boot may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(900);

const EXAMPLES: &str = "\
Examples:
  cargo xtask vm                          all kernels, both versions of cgroups
  cargo xtask vm --only 5.10,newest       two of the kernels
  cargo xtask vm --only 5.10 --check messages,sleeps    two of the checks
  cargo xtask vm --list                   the kernels, and which are already downloaded
  cargo xtask vm --write --keep-going     write docs/KERNELS.md
  cargo xtask vm --write --resume         the same, after the emulator crashed in some boots
  cargo xtask vm --arch arm64 --only 6.12 a kernel for 64-bit ARM
  cargo xtask vm --arch arm64 --write --keep-going    write docs/KERNELS-arm64.md
  cargo xtask vm --jobtrace FILE          check another build of jobtrace, such as a package's
  cargo xtask vm --object FILE            check another BPF object
  cargo xtask vm --kernel /boot/vmlinuz-6.8.0 --modules /lib/modules/6.8.0
  cargo xtask vm --only 6.1 --cpus 8,64,255 --write   memory by CPUs, docs/SIZING.md";

/// Checks jobtrace on other kernels: boots Debian's cloud kernels, and others given by path, in
/// emulated machines of two CPUs (qemu, no KVM needed), loads every BPF program there and compares
/// each number with the kernel's own. The exit status is 1 if something that should work does not;
/// what a kernel lacks is shown as absent.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only these kernels: names from --list, or the beginning of a release
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Boot kernels for this architecture; jobtrace is built for it, with a cross compiler if it is not
    /// the host's
    #[arg(long, value_enum, default_value_t)]
    arch: Arch,
    /// Only these checks, by the beginnings of their names; the hooks always
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with_all = ["quick", "cpus", "write"])]
    check: Vec<String>,
    /// A kernel's file, instead of Debian's kernels; may be given several times
    #[arg(long, value_name = "VMLINUZ", conflicts_with = "only")]
    kernel: Vec<PathBuf>,
    /// Folder of the modules of --kernel, such as /lib/modules/RELEASE
    #[arg(long, value_name = "DIR", requires = "kernel")]
    modules: Option<PathBuf>,
    /// Only this version of cgroups
    #[arg(long, value_enum)]
    cgroups: Option<Cgroups>,
    /// List the kernels and where they are kept
    #[arg(long)]
    list: bool,
    /// Two kernels and one check of each kind, as in `cargo xtask test`
    #[arg(long, conflicts_with_all = ["only", "kernel", "cpus", "write", "arch", "resume"])]
    quick: bool,
    /// Look for newer releases of the downloaded kernels
    #[arg(long)]
    refresh: bool,
    /// Continue with the next kernel if one fails
    #[arg(long)]
    keep_going: bool,
    /// How many machines run at once
    #[arg(long, value_name = "N", default_value_t = 1)]
    at_once: usize,
    /// Take boots that went well before, with the same kernel and the same programs, in place of new ones
    #[arg(long, conflicts_with_all = ["check", "cpus"])]
    resume: bool,
    /// Maximum seconds for one boot
    #[arg(long, value_name = "SECONDS", default_value_t = PATIENCE.as_secs())]
    timeout: u64,
    /// Check this jobtrace instead of the one built from here
    #[arg(long, value_name = "FILE")]
    jobtrace: Option<PathBuf>,
    /// Check this BPF object instead of the one that jobtrace embeds
    #[arg(long, value_name = "FILE")]
    object: Option<PathBuf>,
    /// Instead of the checks, measure an agent with these numbers of possible CPUs, on the first kernel
    /// selected (kernels newer than 6.6, and ARM's, count only CPUs that are present)
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    cpus: Vec<u32>,
    /// Print every comparison
    #[arg(long)]
    verbose: bool,
    /// Write docs/KERNELS.md, docs/KERNELS-arm64.md with --arch arm64, or docs/SIZING.md with --cpus
    #[arg(long)]
    write: bool,
}

/// A version of cgroups to mount in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
pub enum Cgroups {
    /// Hierarchies by controller.
    V1,
    /// The unified hierarchy.
    V2,
}

impl Cgroups {
    fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }
}

/// Runs the chore.
///
/// # Errors
/// When a kernel cannot be had or booted, or something that should work on it does not.
pub fn run(args: &Args) -> Result<()> {
    if args.list {
        return kernels::list();
    }
    if args.quick {
        return quick();
    }
    packages::need(&args.arch.tools())?;
    let kernels = chosen(args)?;
    let contents = contents(args)?;
    let patience = Duration::from_secs(args.timeout);
    if !args.cpus.is_empty() {
        let kernel = kernels.first().context("no kernel is chosen")?;
        if args.arch != Arch::X86 {
            bail!(
                "--cpus takes --arch x86-64: {}'s kernels count only CPUs that are there",
                args.arch.name()
            );
        }
        return sizes::run(kernel, &contents, &args.cpus, patience, args.write);
    }
    let versions = args.cgroups.map_or(vec![Cgroups::V2, Cgroups::V1], |one| vec![one]);
    let boots: Vec<_> =
        kernels.iter().flat_map(|kernel| versions.iter().map(move |one| (kernel, *one))).collect();
    let round = Round {
        work: Work::Checks,
        checks: &args.check,
        patience,
        at_once: args.at_once,
        goes_on: args.keep_going,
        verbose: args.verbose,
        kept: args.check.is_empty().then(|| Kept::new(&contents)).transpose()?,
        resumes: args.resume,
    };
    let columns = round.check_all(&boots, &contents)?;
    print!("{}", table::markdown(&columns));
    if args.write {
        sections::write(args.arch.document(), &table::sections(&columns))?;
    }
    judge(&columns)
}

fn judge(columns: &[Column]) -> Result<()> {
    let failed: Vec<String> = columns.iter().flat_map(Column::failures).collect();
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{} of the checks and hooks above failed:\n{}", failed.len(), failed.join("\n"))
}

/// Checks that `jobtrace` compiles for the architecture that this host is not.
///
/// # Errors
/// When it does not.
pub fn compiles_elsewhere() -> Result<()> {
    let other = if Arch::X86.is_own() { Arch::Arm } else { Arch::X86 };
    programs::compiles(other)
}

/// Two kernels, the oldest with cgroup v1 and the newest with v2, and one check of each kind: what
/// `cargo xtask test` runs.
///
/// # Errors
/// As [`run`].
pub fn quick() -> Result<()> {
    let arch = Arch::X86;
    if !arch.is_own() {
        say(
            "left out: kernels 5.10 and newest for x86-64, which this host is not; `cargo xtask vm \
             --arch arm64` checks ARM's",
        );
        return Ok(());
    }
    packages::need(&arch.tools())?;
    let contents = Contents::build(arch, &programs::jobtrace(arch, false)?, None)?;
    let kernels = [kernels::get("5.10", arch, false)?, kernels::get("newest", arch, false)?];
    let boots = [(&kernels[0], Cgroups::V1), (&kernels[1], Cgroups::V2)];
    // Both at once: neither keeps two CPUs busy all the time.
    let round = Round {
        work: Work::Quick,
        checks: &[],
        patience: PATIENCE,
        at_once: 2,
        goes_on: true,
        verbose: false,
        kept: None,
        resumes: false,
    };
    judge(&round.check_all(&boots, &contents)?)
}

fn chosen(args: &Args) -> Result<Vec<Kernel>> {
    if !args.kernel.is_empty() {
        let modules = args.modules.as_deref();
        return args.kernel.iter().map(|file| Kernel::of_file(file, args.arch, modules)).collect();
    }
    let all = kernels::names();
    if let Some(unknown) = args.only.iter().find(|name| !all.contains(&name.as_str())) {
        bail!("no kernel is called {unknown}: there are {}", all.join(", "));
    }
    let is_meant = |name: &&str| args.only.is_empty() || args.only.iter().any(|one| one == name);
    all.into_iter()
        .filter(is_meant)
        .map(|name| kernels::get(name, args.arch, args.refresh))
        .collect()
}

fn contents(args: &Args) -> Result<Contents> {
    let absolute = |file: &Option<PathBuf>| -> Result<Option<PathBuf>> {
        let Some(file) = file else { return Ok(None) };
        if !file.is_file() {
            bail!("{} is not there", file.display());
        }
        Ok(Some(std::path::absolute(file)?))
    };
    let jobtrace = match absolute(&args.jobtrace)? {
        Some(file) => file,
        None => programs::jobtrace(args.arch, true)?,
    };
    Contents::build(args.arch, &jobtrace, absolute(&args.object)?.as_deref())
}

/// Where the chore keeps what it makes.
fn folder() -> Result<PathBuf> {
    let folder = target_dir().join("vm");
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    Ok(folder)
}

/// The end of a file, for messages.
fn tail(file: &Path, lines: usize) -> String {
    let text = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
