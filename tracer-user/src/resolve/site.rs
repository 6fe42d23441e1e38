//! Rules of a site's own, tried before the built-in ones.

use std::collections::BTreeSet;

use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};

use super::{
    answer::{Answer, Role},
    path::decoded,
    table::RULES,
};
use crate::base::suggest;

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

impl SiteRule {
    /// What may be set of one.
    pub const KEYS: &'static [&'static str] = &["name", "pattern", "manager", "not_a_job"];

    /// Its pattern, ready to be tried at the begin of paths.
    ///
    /// # Errors
    /// When it is no regular expression, has a group that means nothing, or none that names the job and its
    /// manager: what to say.
    pub fn compile(&self) -> Result<Regex, String> {
        let Self { name, pattern, manager, not_a_job } = self;
        let wrong = |what: String| format!("pattern of `{name}`{what}");
        let no_regex = |error: regex::Error| {
            let text = error.to_string();
            // The crate draws a picture of several lines; its last one is the reason.
            let reason = text.lines().next_back().unwrap_or_default();
            wrong(format!(": {}", reason.trim_start_matches("error: ")))
        };
        // As it is written first: the message quotes it.
        Regex::new(pattern).map_err(no_regex)?;
        let regex = Regex::new(&format!("^(?:{pattern})"))
            .or_else(|_| Regex::new(&format!("^(?:{pattern}\n)")))
            .map_err(no_regex)?;
        let groups: Vec<&str> = regex.capture_names().flatten().collect();
        if let Some(group) = groups.iter().find(|group| !GROUPS.contains(group)) {
            return Err(wrong(format!(
                ": unknown group `{group}`{}",
                suggest::cure(group, GROUPS)
            )));
        }
        if !not_a_job && !groups.contains(&"job") {
            let cure = "add one or `not_a_job = true`";
            return Err(wrong(format!(" has no group `(?<job>...)`, {cure}")));
        }
        let is_named = manager.as_ref().is_some_and(|manager| !manager.is_empty());
        if !not_a_job && !is_named && !groups.contains(&"manager") {
            return Err(format!(
                "`{name}` names no manager, set `manager` or give its pattern a group `(?<manager>...)`"
            ));
        }
        Ok(regex)
    }
}

/// What is wrong with `names` as managers, where the site has `rules`: no rule tells of one. Nothing where a rule of the
/// site's may name any.
pub fn unknown_manager(names: &[String], rules: &[SiteRule]) -> Option<String> {
    if rules.iter().any(|rule| rule.pattern.contains("<manager>")) {
        return None;
    }
    let of_site = rules.iter().filter_map(|rule| rule.manager.as_deref());
    let ours = RULES.iter().filter(|rule| rule.role != Role::NotAJob).map(|rule| rule.manager);
    let known: BTreeSet<_> = ours.chain(of_site).collect();
    let unknown = names.iter().find(|name| !known.contains(name.as_str()))?;
    Some(format!("no rule has the manager `{unknown}`{}", suggest::cure(unknown, known)))
}

/// A site's rule, ready to be tried.
#[derive(Debug)]
pub(super) struct CompiledSiteRule {
    rule: SiteRule,
    regex: Regex,
}

impl CompiledSiteRule {
    /// # Errors
    /// As [`SiteRule::compile`].
    pub fn new(rule: &SiteRule) -> anyhow::Result<Self> {
        let regex = rule.compile().map_err(anyhow::Error::msg)?;
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
            (rule("/x"), "has no group `(?<job>...)`"),
            (rule("/(?<jb>x)"), "unknown group `jb`, did you mean `job`?"),
            (nobody, "names no manager"),
            (rule("/(?<job>x{1000000000})"), "size limit"),
        ] {
            let error = format!("{:#}", CompiledSiteRule::new(&rule).unwrap_err());
            assert!(error.contains("`ours`") && error.contains(words), "{error}");
        }
        CompiledSiteRule::new(&rule("(?x)/(?<job>x) # the end")).unwrap();
    }

    #[test]
    fn a_manager_of_no_rule_is_named() {
        let unknown = |name: &str, rules: &[SiteRule]| unknown_manager(&[name.to_owned()], rules);
        let ours = [rule("/(?<job>x)")];
        assert_eq!((unknown("session", &[]), unknown("ours", &ours)), (None, None));
        let problem = unknown("sesion", &ours).unwrap();
        assert_eq!(problem, "no rule has the manager `sesion`, did you mean `session`?");
        assert!(unknown("none", &[]).is_some(), "what is no job has none");
        assert!(unknown("theirs", &ours).is_some_and(|problem| problem.contains("`ours`")));
        assert_eq!(unknown("theirs", &[rule("/(?<manager>y)/(?<job>x)")]), None, "any");
    }

    #[test]
    fn the_keys_are_the_fields() {
        let table = toml::Table::try_from(rule("x")).unwrap();
        let mut keys = SiteRule::KEYS.to_vec();
        keys.sort_unstable();
        assert_eq!(table.keys().collect::<Vec<_>>(), keys);
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
