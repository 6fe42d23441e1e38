//! Rules of a site's own, tried before the built-in ones.

use anyhow::{Context, ensure};
use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};

use super::{
    answer::{Answer, Role},
    path::decoded,
};

/// A `[[rule]]` of the configuration: a regular expression for the begin of a cgroup's path, whose named groups
/// (`job`, and where they apply `step`, `task`, `user`, `uid`, `manager`) give the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteRule {
    /// What the rule is called in answers.
    pub name: String,
    /// The regular expression, as the `regex` crate reads it; it must match the path from its begin.
    pub pattern: String,
    /// The manager of its jobs, where the pattern has no group `manager`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<String>,
    /// Cgroups that match belong to no job.
    #[serde(default)]
    pub not_a_job: bool,
}

/// The groups that a pattern may have.
const GROUPS: [&str; 6] = ["job", "step", "task", "user", "uid", "manager"];

/// A site's rule, ready to be tried.
#[derive(Debug)]
pub(super) struct CompiledSiteRule {
    rule: SiteRule,
    regex: Regex,
}

impl CompiledSiteRule {
    /// # Errors
    /// When the pattern is no regular expression, has a group that means nothing, or none that names the
    /// job and its manager.
    pub fn new(rule: &SiteRule) -> anyhow::Result<Self> {
        let SiteRule { name, pattern, manager, not_a_job } = rule;
        // Whole as it is written first: the message quotes it.
        Regex::new(pattern).with_context(|| format!("rule {name:?}: its pattern is no regex"))?;
        let regex = Regex::new(&format!("^(?:{pattern})"))
            .or_else(|_| Regex::new(&format!("^(?:{pattern}\n)")))
            .with_context(|| format!("rule {name:?}: its pattern is no regex"))?;
        let groups: Vec<&str> = regex.capture_names().flatten().collect();
        if let Some(group) = groups.iter().find(|group| !GROUPS.contains(group)) {
            let known = GROUPS.join(", ");
            anyhow::bail!("rule {name:?}: its pattern has a group {group:?}, use {known}");
        }
        let has = |group| groups.contains(&group);
        ensure!(
            *not_a_job || has("job"),
            "rule {name:?}: its pattern names no job, give it a group (?<job>…) or set not_a_job"
        );
        ensure!(
            *not_a_job || has("manager") || manager.as_ref().is_some_and(|name| !name.is_empty()),
            "rule {name:?}: it names no manager, set one or give its pattern a group (?<manager>…)"
        );
        Ok(Self { rule: rule.clone(), regex })
    }

    /// What the rule says of `path`, which is as /proc/PID/cgroup shows it; `None` where it does not match,
    /// or matches and names nothing that could be a job.
    pub fn apply(&self, path: &str) -> Option<Answer> {
        let captures = self.regex.captures(path)?;
        let manager = text(&captures, "manager").or_else(|| self.rule.manager.clone());
        let manager = manager.as_deref().unwrap_or("none");
        if self.rule.not_a_job {
            return Some(Answer::new(Role::NotAJob, manager, &self.rule.name));
        }
        let job = captures.name("job")?;
        let mut answer = Answer::new(Role::Job, manager, &self.rule.name);
        answer.job = text(&captures, "job")?;
        answer.step = text(&captures, "step");
        answer.task = text(&captures, "task");
        answer.user = text(&captures, "user");
        answer.uid = text(&captures, "uid").and_then(|uid| uid.parse().ok());
        let above = path[..job.end()].split('/').filter(|component| !component.is_empty());
        answer.root = above.count();
        Some(answer)
    }
}

/// A group's text, systemd's escapes undone; `None` where it is empty, or is not fit to name something.
fn text(captures: &Captures, group: &str) -> Option<String> {
    let text = decoded(captures.name(group)?.as_str());
    let is_fit = !text.is_empty()
        && text.len() <= Answer::LONGEST_BYTES
        && !text.bytes().any(|byte| byte.is_ascii_control());
    is_fit.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(pattern: &str) -> SiteRule {
        SiteRule {
            name: "ours".into(),
            pattern: pattern.into(),
            manager: Some("ours".into()),
            not_a_job: false,
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut nobody = rule("/(?<job>x)");
        nobody.manager = None;
        for (rule, words) in [
            (rule("/(?<job>x"), "unclosed group"),
            (rule("/x"), "names no job"),
            (rule("/(?<jb>x)"), "has a group \"jb\""),
            (nobody, "names no manager"),
            (rule("/(?<job>x{1000000000})"), "size limit"),
        ] {
            let error = format!("{:#}", CompiledSiteRule::new(&rule).unwrap_err());
            assert!(error.starts_with("rule \"ours\": ") && error.contains(words), "{error}");
        }
        CompiledSiteRule::new(&rule("(?x)/(?<job>x) # the end")).unwrap();
    }

    #[test]
    fn names_are_decoded_and_fit() {
        let ours = CompiledSiteRule::new(&rule("/batch/(?<user>[^/]+)/(?<job>[^/]+)")).unwrap();
        let answer = ours.apply(r"/batch/ada/j\x2d7/sub").unwrap();
        let seen = (answer.job.as_str(), answer.user.as_deref(), answer.root);
        assert_eq!(seen, ("j-7", Some("ada"), 3));
        assert_eq!(ours.apply("/batch/ada/\x1b[31m"), None);
        assert_eq!(ours.apply(&format!("/batch/ada/{}", "x".repeat(256))), None);
        assert_eq!(ours.apply("/x/batch/ada/7"), None, "from its begin");
        let answer = ours.apply("/batch/a\tb/7").unwrap();
        assert_eq!((answer.job.as_str(), answer.user), ("7", None));
    }

    #[test]
    fn a_rule_may_take_cgroups_out() {
        let mut ours = rule("/slurm/uid_0/");
        ours.not_a_job = true;
        ours.manager = None;
        let answer = CompiledSiteRule::new(&ours).unwrap().apply("/slurm/uid_0/job_1").unwrap();
        assert_eq!((answer.role, answer.manager.as_str()), (Role::NotAJob, "none"));
    }
}
