//! Where the command's v2 cgroup is to be, and which controllers to switch on for it. Pure.
//!
//! Below the caller's cgroup, unless that holds processes: the kernel then lets it hand no controller to
//! a child. Where it is a scope of systemd's on which nobody set anything, beside it instead, in the
//! slice, so that memory and I/O are counted and every limit still holds. Never above a setting, and
//! never out of a cgroup that a scheduler or a container runtime looks after.

/// v2 controllers that count for us and leave the scheduling alone.
pub(super) const COUNTING: [&str; 3] = ["memory", "io", "pids"];

/// Scopes that only group what a user started by hand: logind's, systemd-run's, those of terminals
/// and desktops. Others (`docker-`, `libpod-`, `cri-`, `apptainer-`, `slurmstepd`) account for or end
/// what is in them. Services do too.
const SESSIONS: [&str; 6] =
    ["session-", "run-", "app-", "vte-spawn-", "tmux-spawn-", "ptyxis-spawn-"];

/// The one setting that does not hold a command where it is: systemd puts it on every scope
/// (`DefaultTasksMax`), and it is copied to the new cgroup, which therefore has no more tasks either.
pub(super) const COPIED: &str = "pids.max";

/// One of the cgroups from the mount point down to the caller's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CgroupLevel {
    /// Name of the directory.
    pub name: String,
    /// `cgroup.controllers`.
    pub offered: Vec<String>,
    /// `cgroup.subtree_control`.
    pub active: Vec<String>,
    /// The hierarchy's root, which may hold processes and have controllers too.
    pub is_root: bool,
    /// Whether it holds processes itself.
    pub holds_processes: bool,
}

/// A controller to be switched on in the cgroup of that level, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Switch {
    pub level: usize,
    pub controller: &'static str,
}

/// The decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    /// Level of the cgroup in which the new one is made.
    pub parent: usize,
    pub switches: Vec<Switch>,
    /// Controllers that the host has and the new cgroup will not have.
    pub missing: Vec<&'static str>,
    /// Why it is not beside the caller's, where that matters.
    pub why_below: Option<String>,
}

/// Where to make the cgroup of a caller in the last of `levels`, on which `settings` differ from the
/// kernel's defaults.
pub(super) fn choose(levels: &[CgroupLevel], settings: &[String]) -> Choice {
    let Some((own, above)) = levels.split_last() else { return Choice::default() };
    let wanted = |name: &&str| has(&levels[0].offered, name);
    let wanted: Vec<&'static str> = COUNTING.into_iter().filter(wanted).collect();
    let mut below = reach(levels, above.len(), &wanted);
    if below.missing.is_empty() {
        return below;
    }
    match may_leave(own, above, settings) {
        Err(why) => below.why_below = Some(why),
        Ok(()) => {
            let mut beside = reach(above, 0, &wanted);
            beside.parent = above.len() - 1;
            if beside.missing.len() < below.missing.len() {
                return beside;
            }
            below.why_below = Some("its slice cannot enable them either".into());
        }
    }
    below
}

/// What is to be switched on from level `first` down to the last, in which the new cgroup is to be. A
/// controller that one level cannot hand on is switched on in none.
fn reach(levels: &[CgroupLevel], first: usize, wanted: &[&'static str]) -> Choice {
    let mut choice = Choice { parent: first, ..Choice::default() };
    for &controller in wanted {
        let is_off = |(_, level): &(usize, &CgroupLevel)| !has(&level.active, controller);
        let off: Vec<(usize, &CgroupLevel)> =
            levels.iter().enumerate().skip(first).filter(is_off).collect();
        let is_free = |level: &CgroupLevel| level.is_root || !level.holds_processes;
        let is_offered = levels.get(first).is_some_and(|level| has(&level.offered, controller));
        if is_offered && off.iter().all(|(_, level)| is_free(level)) {
            choice.switches.extend(off.iter().map(|&(level, _)| Switch { level, controller }));
        } else {
            choice.missing.push(controller);
        }
    }
    choice
}

/// Whether a command may be beside `own` instead of below it; otherwise why not.
fn may_leave(own: &CgroupLevel, above: &[CgroupLevel], settings: &[String]) -> Result<(), String> {
    let Some(parent) = above.last() else {
        return Err("no cgroup above it is visible here".into());
    };
    let is_session = own.name.ends_with(".scope")
        && SESSIONS.iter().any(|prefix| own.name.starts_with(prefix))
        && (parent.name.ends_with(".slice") || parent.is_root);
    let held: Vec<&str> =
        settings.iter().map(String::as_str).filter(|name| *name != COPIED).collect();
    if !is_session {
        Err("the command may leave only a session's scope (docs/OPERATING.md, Cgroups)".into())
    } else if !held.is_empty() {
        Err(format!(
            "its own {} must stay in effect: set that on its slice instead, or use `systemd-run --scope jobtrace run -- CMD`",
            held.join(", ")
        ))
    } else {
        Ok(())
    }
}

fn has(list: &[String], name: &str) -> bool {
    list.iter().any(|word| word == name)
}

#[cfg(test)]
mod tests;
