//! What each value may be, and whether a site's rules can give an answer. Pure: the file and the flags
//! are judged alike.

use std::collections::BTreeSet;

use super::Config;
use crate::{base::suggest, resolve::SiteRule};

/// The most slots that the kernel side has room for, that of the rest of the node apart.
const MOST_SLOTS: u32 = tracer_ebpf::ids::MOST_SLOTS as u32;

impl Config {
    /// What is out of its limits: the key's path and why. Empty where all is well.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        let mut check = |is_well: bool, path, reason: &dyn Fn() -> String| {
            if !is_well {
                found.push((path, reason()));
            }
        };
        let seconds = self.interval.0.as_secs();
        check(
            self.interval.0.subsec_nanos() == 0 && (1..=3600).contains(&seconds),
            "interval",
            &|| format!("{} is no whole number of seconds from 1s to 1h", self.interval),
        );
        check((1..=MOST_SLOTS).contains(&self.slots), "slots", &|| {
            format!("{} is not from 1 to {MOST_SLOTS}", self.slots)
        });
        check(self.spare_slots < self.slots, "spare_slots", &|| {
            format!("{} is not less than `slots`, which is {}", self.spare_slots, self.slots)
        });
        for (path, dir) in [("spool.dir", &self.spool.dir), ("state.dir", &self.state.dir)] {
            check(dir.is_absolute(), path, &|| {
                format!("{:?} does not begin with /", dir.display().to_string())
            });
        }
        check(self.spool.max_bytes.0 >= 1 << 20, "spool.max_bytes", &|| {
            format!("{} is less than 1 MiB", self.spool.max_bytes)
        });
        check(self.spool.max_files >= 1, "spool.max_files", &|| "0 holds no file".to_owned());
        check(self.spool.max_age.0.as_secs() >= 60, "spool.max_age", &|| {
            format!("{} is less than 1m", self.spool.max_age)
        });
        let ratio = self.overhead.max_ratio;
        check((0.0001..=1.0).contains(&ratio), "overhead.max_ratio", &|| {
            format!("{ratio} is not from 0.0001 to 1")
        });
        let patience = self.overhead.patience;
        check((1..=1000).contains(&patience), "overhead.patience", &|| {
            format!("{patience} is not from 1 to 1000")
        });
        let back_off = self.overhead.back_off;
        check((1..=3600).contains(&back_off.0.as_secs()), "overhead.back_off", &|| {
            format!("{back_off} is not from 1s to 1h")
        });
        let (period, retry) = (self.gpu.period, self.gpu.retry);
        check((200..=2_000).contains(&period.0.as_millis()), "gpu.period", &|| {
            format!("{period} is not from 200ms to 2s")
        });
        check((10..=86_400).contains(&retry.0.as_secs()), "gpu.retry", &|| {
            format!("{retry} is not from 10s to 1d")
        });
        let held_dir = &self.gpu.held_dir;
        check(held_dir.is_absolute() || held_dir.as_os_str().is_empty(), "gpu.held_dir", &|| {
            format!("{:?} does not begin with /", held_dir.display().to_string())
        });
        let root = &self.gpu.sysfs_root;
        check(root.is_absolute(), "gpu.sysfs_root", &|| {
            format!("{:?} does not begin with /", root.display().to_string())
        });
        let distinct: BTreeSet<_> = self.rules.iter().map(|r| &r.name).collect();
        check(distinct.len() == self.rules.len(), "rule", &|| "two have one name".to_owned());
        for rule in &self.rules {
            if let Err(reason) = check_rule(rule) {
                check(false, "rule", &|| reason.clone());
            }
        }
        found
    }
}

/// Whether the rule's pattern is one and can give an answer.
fn check_rule(rule: &SiteRule) -> Result<(), String> {
    let pattern = regex::Regex::new(&rule.pattern).map_err(|error| {
        let text = error.to_string();
        // The crate draws a picture of several lines; its last one is the reason.
        let reason = text.lines().next_back().unwrap_or_default();
        format!("pattern of `{}`: {}", rule.name, reason.trim_start_matches("error: "))
    })?;
    const GROUPS: [&str; 6] = ["job", "step", "task", "user", "uid", "manager"];
    for group in pattern.capture_names().flatten() {
        if !GROUPS.contains(&group) {
            let cure = suggest::cure(group, GROUPS);
            return Err(format!("pattern of `{}`: unknown group `{group}`{cure}", rule.name));
        }
    }
    if !rule.not_a_job && !pattern.capture_names().flatten().any(|group| group == "job") {
        return Err(format!(
            "pattern of `{}` has no group `(?<job>...)`, add one or `not_a_job = true`",
            rule.name
        ));
    }
    let named = rule.manager.as_ref().is_some_and(|manager| !manager.is_empty());
    if !rule.not_a_job && !named && !pattern.capture_names().flatten().any(|g| g == "manager") {
        return Err(format!(
            "`{}` names no manager, set `manager` or give its pattern a group `(?<manager>...)`",
            rule.name
        ));
    }
    Ok(())
}
