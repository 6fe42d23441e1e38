//! Applies the rules to paths. Pure: the same path has the same answer on every node.

use aho_corasick::AhoCorasick;
use regex::bytes::{Captures, Regex};

use super::{
    answer::{Answer, Role},
    path::{Plain, plain},
    site::{CompiledSiteRule, SiteRule},
    table::{FRAGMENTS, ROOT, RULES, Rule, Tier, UNKNOWN},
};

/// The rules, compiled.
#[derive(Debug)]
pub struct Resolver {
    site: Vec<CompiledSiteRule>,
    /// Finds the needles of all rules in one pass.
    needles: AhoCorasick,
    /// The rule that each needle is of, by its place in [`RULES`].
    rule_of_needle: Vec<usize>,
    /// The patterns, in the order of [`RULES`].
    patterns: Vec<Regex>,
}

impl Resolver {
    /// A resolver with the rules of `site` before its own.
    ///
    /// # Errors
    /// When a rule of `site` is no regular expression, or could never name a job: the message has the
    /// rule's name.
    pub fn new(site: &[SiteRule]) -> anyhow::Result<Self> {
        let site = site.iter().map(CompiledSiteRule::new).collect::<anyhow::Result<_>>()?;
        let compile = |rule: &Rule| Regex::new(&expression(rule.pattern));
        let patterns = RULES.iter().map(compile).collect::<Result<_, _>>()?;
        let with_rule = |(index, rule): (usize, &Rule)| rule.needles.iter().map(move |_| index);
        let rule_of_needle = RULES.iter().enumerate().flat_map(with_rule).collect();
        let needles = AhoCorasick::new(RULES.iter().flat_map(|rule| rule.needles))?;
        Ok(Self { site, needles, rule_of_needle, patterns })
    }

    /// Names of the built-in rules.
    pub fn rule_names() -> impl Iterator<Item = &'static str> {
        RULES.iter().map(|rule| rule.name).chain([ROOT, UNKNOWN])
    }

    /// Whose the cgroup at `path` is; a path as /proc/PID/cgroup shows it.
    pub fn path(&self, path: &str) -> Answer {
        self.find(path).1
    }

    /// Whose a process is, by all lines of its /proc/PID/cgroup: see [`Self::deciding_line`].
    pub fn lines(&self, proc_pid_cgroup: &str) -> Answer {
        self.deciding_line(proc_pid_cgroup).0
    }

    /// Whose a process is, and the line of its /proc/PID/cgroup that says so. The first line that yields a
    /// job wins, but a scheduler's job wins over a session (pam_slurm_adopt leaves one in systemd's own
    /// hierarchy), as it does within a path. Where other lines go deeper into the same job, their step and
    /// task count.
    pub fn deciding_line<'a>(&self, proc_pid_cgroup: &'a str) -> (Answer, Option<&'a str>) {
        let path_of = |line: &'a str| Some((line, line.splitn(3, ':').nth(2)?));
        let mut found: Vec<_> = proc_pid_cgroup
            .lines()
            .filter_map(path_of)
            .map(|(line, path)| (self.find(path), line))
            .collect();
        // Stable, so that among equals the first line stays first.
        found.sort_by_key(|((tier, answer), _)| (!answer.is_job(), *tier));
        let mut found = found.into_iter();
        let Some(((_, mut answer), line)) = found.next() else {
            return (Answer::new(Role::NotAJob, "none", UNKNOWN), None);
        };
        let is_same = |other: &Answer| other.manager == answer.manager && other.job == answer.job;
        let deeper: Vec<Answer> = found
            .map(|((_, other), _)| other)
            .filter(|other| other.is_job() && is_same(other))
            .collect();
        for other in deeper {
            // A task is one of its step.
            if answer.step.is_none() {
                answer.step = other.step;
                answer.task = other.task;
            } else if answer.task.is_none() && answer.step == other.step {
                answer.task = other.task;
            }
            answer.uid = answer.uid.or(other.uid);
        }
        (answer, Some(line))
    }

    fn find(&self, path: &str) -> (Tier, Answer) {
        if let Some(answer) = self.site.iter().find_map(|rule| rule.apply(path)) {
            return (Tier::Site, answer);
        }
        let plain = plain(path);
        if plain.bytes.is_empty() {
            return (Tier::Rest, Answer::new(Role::NotAJob, "none", ROOT));
        }
        // In the order of the table, which is that of the tiers.
        let candidates = self.candidates(&plain.bytes);
        let delegated = delegated_from(&plain.bytes);
        for tier in candidates.chunk_by(|a, b| RULES[*a].tier == RULES[*b].tier) {
            let matches = tier.iter().filter_map(|index| {
                let captures = self.patterns[*index].captures(&plain.bytes)?;
                let start = captures.get_match().start();
                if RULES[*index].needs_root() && start >= delegated {
                    return None;
                }
                Some((start, answer(&RULES[*index], &captures, &plain)?))
            });
            // The first of equals: the earlier row.
            if let Some((_, answer)) = matches.min_by_key(|(start, _)| *start) {
                return (RULES[tier[0]].tier, answer);
            }
        }
        (Tier::Rest, Answer::new(Role::NotAJob, "none", UNKNOWN))
    }

    /// The rules that may match, in the order of the table.
    fn candidates(&self, path: &[u8]) -> Vec<usize> {
        let found = self.needles.find_overlapping_iter(path);
        let mut rules: Vec<usize> =
            found.map(|found| self.rule_of_needle[found.pattern().as_usize()]).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }
}

/// `pattern` as a regular expression over whole components.
fn expression(pattern: &str) -> String {
    let (begin, pattern) = match pattern.strip_prefix('^') {
        Some(rest) => ("^/", rest),
        None => ("/", pattern),
    };
    let expand = |text: String, (word, part): &(&str, &str)| text.replace(word, part);
    let pattern = FRAGMENTS.iter().fold(pattern.to_owned(), expand);
    format!("(?-u){begin}(?:{pattern})(?:/|$)")
}

/// What a match of `rule` says; `None` where a text of it is longer than any cgroup's name.
fn answer(rule: &Rule, captures: &Captures, plain: &Plain) -> Option<Answer> {
    let mut answer = Answer::new(rule.role, rule.manager, rule.name);
    if !answer.is_job() {
        return Some(answer);
    }
    let get = |group: &str| captures.name(group).filter(|found| !found.is_empty());
    let text = |group: &str| {
        get(group).map(|found| String::from_utf8_lossy(found.as_bytes()).into_owned())
    };
    let name = get("job").or_else(|| get("sluid"))?;
    if captures.iter().flatten().skip(1).any(|found| found.len() > Answer::LONGEST_BYTES) {
        return None;
    }
    answer.root = plain.climbed + count(plain.bytes[..name.end()].iter());
    answer.needs_root = rule.needs_root();
    answer.sluid = text("sluid");
    answer.step = text("step");
    answer.task = text("task");
    answer.array = text("array");
    answer.user = text("user");
    answer.uid = text("uid").and_then(|uid| uid.parse().ok());
    answer.container = text("container");
    answer.qos = text("qos");
    answer.runtime = text("runtime").map(|name| name.trim_start_matches("cri-").to_owned());
    answer.node = text("node");
    answer.cluster = text("cluster");
    answer.job = String::from_utf8_lossy(name.as_bytes()).into_owned();
    match rule.tier {
        // systemd's slices nest by dashes, so the kubelet writes underscores.
        Tier::Pod => {
            answer.job = answer.job.replace('_', "-");
            answer.qos.get_or_insert_with(|| "guaranteed".into());
        }
        // Flux prints ƒ or f as the locale lets it: one job, one name.
        Tier::Scheduler => answer.job = answer.job.replace('ƒ', "f"),
        Tier::Runtime | Tier::Run if answer.uid.is_none() => {
            answer.uid = owner_of_slice(&plain.bytes[..name.start()]);
        }
        _ => {}
    }
    Some(answer)
}

/// Where in a plain path begins what a user's own systemd makes, as the user wants it; past the end where
/// nothing does.
fn delegated_from(path: &[u8]) -> usize {
    let mut end = 0;
    for component in path.split(|byte| *byte == b'/').skip(1) {
        end += 1 + component.len();
        let uid = component.strip_prefix(b"user@").and_then(|rest| rest.strip_suffix(b".service"));
        if uid.is_some_and(|uid| !uid.is_empty() && uid.iter().all(u8::is_ascii_digit)) {
            return end;
        }
    }
    usize::MAX
}

fn count<'a>(bytes: impl Iterator<Item = &'a u8>) -> usize {
    bytes.filter(|byte| **byte == b'/').count()
}

/// The user in whose slice a runtime's cgroup is, where it is in one.
fn owner_of_slice(above: &[u8]) -> Option<u32> {
    above.split(|byte| *byte == b'/').find_map(|component| {
        let uid = component.strip_prefix(b"user-")?.strip_suffix(b".slice")?;
        std::str::from_utf8(uid).ok()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_is_sound() {
        assert!(RULES.is_sorted_by_key(|rule| rule.tier), "the tiers are in order");
        let names: BTreeSet<_> = RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), RULES.len(), "a name is one rule's");
        for rule in RULES {
            let expression = expression(rule.pattern);
            let regex = Regex::new(&expression).unwrap();
            let groups: BTreeSet<_> = regex.capture_names().flatten().collect();
            let names_job = groups.contains("job") || groups.contains("sluid");
            let is_job = matches!(rule.role, Role::Job | Role::StepDaemon);
            assert_eq!(names_job, is_job, "{}: {expression}", rule.name);
            assert!(!rule.needles.is_empty(), "{}", rule.name);
            for word in FRAGMENTS.iter().map(|(word, _)| word) {
                assert!(!expression.contains(word), "{}: {word} is left", rule.name);
            }
        }
        for (word, _) in FRAGMENTS {
            let uses = |text: &str| text.contains(word);
            let is_used = RULES.iter().any(|rule| uses(rule.pattern))
                || FRAGMENTS.iter().any(|(_, part)| uses(part));
            assert!(is_used, "{word}");
        }
    }

    #[test]
    fn a_path_without_a_needle_is_not_matched() {
        let tables = [
            include_str!("../../tests/resolve/cgroup_paths.tsv"),
            include_str!("../../tests/resolve/other_sites.tsv"),
        ];
        let resolver = Resolver::new(&[]).unwrap();
        for path in tables.iter().flat_map(|table| table.lines()) {
            let plain = plain(path.split('\t').next().unwrap());
            let candidates = resolver.candidates(&plain.bytes);
            for (index, rule) in RULES.iter().enumerate() {
                let is_match = resolver.patterns[index].is_match(&plain.bytes);
                assert!(!is_match || candidates.contains(&index), "{}: {path}", rule.name);
            }
        }
    }
}
