//! The limit of open files: raised for jobtrace itself, which holds some for each CPU and slot.

use std::{
    error::Error,
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What `jobtrace run` holds at most whatever the node's CPUs: maps, programs, links, cgroups, outputs, and
/// what it takes to start the command, and the files of its cgroup that stay open; 90 were measured.
const FIXED: u64 = 104;
/// Room for what a GPU's driver opens.
const OF_GPUS: u64 = 38;
/// What counting operations on files holds: 37 were measured.
const OF_IO: u64 = 40;
/// And seeing which software runs: 22 were.
const OF_SOFTWARE: u64 = 26;
/// And for each CPU: the events of page faults.
const PER_CPU: u64 = 3;

/// What this process demanded: nobody may take it who could do without.
static DEMANDED: AtomicU64 = AtomicU64::new(0);

/// The limit as it was found, for a command that is started: it must not find another one under jobtrace.
#[derive(Clone, Copy, Debug)]
pub struct OpenFiles(Rlimit);

impl OpenFiles {
    /// Raises the soft limit as far as anybody may, to the hard one.
    pub fn raise() -> Self {
        let found = getrlimit(Resource::Nofile);
        // Never refused; and were it, the file that is one too many would say so.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: found.maximum, ..found });
        Self(found)
    }

    /// Gives the limit back, in the forked child; one system call. Files above it stay open.
    pub fn restore(&self) {
        let _ = setrlimit(Resource::Nofile, self.0);
    }
}

/// What holds files beside a plain `jobtrace run`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// Operations on files are counted, if only now and then.
    pub io: bool,
    /// It is seen which software runs.
    pub software: bool,
    /// The agent's.
    pub slots: Option<SlotNeeds>,
}

/// The agent's slots. A slot has banks from its first job on, and keeps them: any may come into use.
#[derive(Clone, Copy, Debug)]
pub struct SlotNeeds {
    /// Most that there may be, the rest of the node's left out.
    pub most: u64,
    /// Banks of each.
    pub banks: u64,
}

impl Needs {
    /// How many files may come to be held on a node of so many CPUs that are online.
    pub fn files(&self, cpus: u64) -> u64 {
        let io = if self.io { OF_IO } else { 0 };
        let software = if self.software { OF_SOFTWARE } else { 0 };
        let banks = self.slots.map_or(0, |slots| slots.banks * (slots.most + 1));
        needed(cpus) + io + software + banks
    }

    /// Refuses the limit `most` where it is too low for them.
    fn judge(&self, most: Option<u64>, cpus: u64) -> Result<(), TooFew> {
        let needed = self.files(cpus);
        let Some(most) = most.filter(|most| *most < needed) else { return Ok(()) };
        let slots_fit = self.slots.map(|slots| {
            let without = Self { slots: None, ..*self }.files(cpus);
            (most.saturating_sub(without) / slots.banks).saturating_sub(1)
        });
        Err(TooFew { most, needed, slots_fit })
    }
}

/// The hard limit of open files is too low for this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFew {
    /// What it is.
    pub most: u64,
    /// What is needed.
    pub needed: u64,
    /// Of the agent: how many slots there are files for.
    pub slots_fit: Option<u64>,
}

impl TooFew {
    /// What to do.
    pub fn cure(&self) -> String {
        let needed = self.needed;
        let raise = format!("raise the hard limit: ulimit -Hn {needed} as root, or limits.conf");
        match self.slots_fit {
            None => raise,
            Some(0) => format!("{raise}, or LimitNOFILE= of its unit"),
            Some(fit) => {
                format!("{raise}, or LimitNOFILE= of its unit, or set `slots` to {fit} at most")
            }
        }
    }
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { most, needed, slots_fit } = self;
        let need = match slots_fit {
            None => "this node's CPUs need",
            Some(_) => "this node's CPUs and the agent's slots need",
        };
        write!(f, "at most {most} files may be open, but {need} {needed}: {}", self.cure())
    }
}

impl Error for TooFew {}

/// Refuses a hard limit under which not everything could be traced, and loading would end halfway.
///
/// # Errors
/// When it is too low; not where the CPUs cannot be counted.
pub fn check() -> Result<(), TooFew> {
    let Ok(cpus) = aya::util::online_cpus() else { return Ok(()) };
    Needs::default().judge(most(), cpus.len() as u64)
}

/// As [`check`], for all of `needs`; what they are is left alone by what opens files for speed, see [`to_spare`].
///
/// # Errors
/// As there.
pub fn demand(needs: &Needs) -> Result<(), TooFew> {
    let Ok(cpus) = aya::util::online_cpus() else { return Ok(()) };
    let cpus = cpus.len() as u64;
    DEMANDED.store(needs.files(cpus), Relaxed);
    needs.judge(most(), cpus)
}

/// How many files may be kept open for speed alone; `None`: as many as one likes.
pub fn to_spare() -> Option<u64> {
    most().map(|most| part_to_spare(most, DEMANDED.load(Relaxed)))
}

/// Half of what is left: drivers of many GPUs, say, open more than was foreseen.
fn part_to_spare(most: u64, demanded: u64) -> u64 {
    most.saturating_sub(demanded + OF_GPUS) / 2
}

/// How many files `jobtrace run` may come to hold on a node of so many CPUs that are online.
pub fn needed(cpus: u64) -> u64 {
    FIXED + PER_CPU * cpus
}

/// The same with room for GPUs.
pub fn needed_with_gpus(cpus: u64) -> u64 {
    needed(cpus) + OF_GPUS
}

/// How many this process may come to hold; `None`: as many as it likes.
pub fn most() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: Needs =
        Needs { io: true, software: false, slots: Some(SlotNeeds { most: 256, banks: 1 }) };

    #[test]
    fn the_agent_demands_a_file_for_each_bank_of_each_slot() {
        let plain = Needs { slots: None, ..AGENT }.files(2);
        assert!(plain > needed(2));
        assert_eq!(AGENT.files(2), plain + 257);
        let full = Needs { slots: Some(SlotNeeds { most: 256, banks: 2 }), ..AGENT };
        assert_eq!(full.files(2), plain + 514);
        assert_eq!(AGENT.judge(Some(AGENT.files(2)), 2), Ok(()));
        assert_eq!(AGENT.judge(None, 2), Ok(()));
    }

    #[test]
    fn too_few_for_the_slots_is_told_with_the_slots_that_fit() {
        let too_few = AGENT.judge(Some(300), 2).unwrap_err();
        let fit = too_few.slots_fit.unwrap();
        let told = too_few.to_string();
        for part in [
            "at most 300 files may be open, but this node's CPUs and the agent's slots need ",
            format!("ulimit -Hn {} as root", AGENT.files(2)).as_str(),
            format!("set `slots` to {fit} at most").as_str(),
        ] {
            assert!(told.contains(part), "{told}");
        }
        let with = |most| Needs { slots: Some(SlotNeeds { most, banks: 1 }), ..AGENT };
        assert_eq!(with(fit).judge(Some(300), 2), Ok(()), "what it advises is enough");
        assert!(with(fit + 1).judge(Some(300), 2).is_err());
        let none_fit = AGENT.judge(Some(120), 2).unwrap_err();
        assert_eq!(none_fit.slots_fit, Some(0));
        assert!(!none_fit.to_string().contains("`slots` to"), "{none_fit}");
    }

    #[test]
    fn what_is_kept_for_speed_leaves_what_was_demanded() {
        let demanded = AGENT.files(2);
        for most in [0, demanded, demanded + OF_GPUS] {
            assert_eq!(part_to_spare(most, demanded), 0, "{most}");
        }
        assert_eq!(part_to_spare(demanded + OF_GPUS + 100, demanded), 50);
        assert!(part_to_spare(1_048_576, demanded) > 500_000);
    }
}
