//! What a site says of its software: rules of its own, folders that are its, names to tell and not to tell. Its file is
//! `/etc/jobtrace/software.toml`.

use std::{fmt::Write, path::Path};

use anyhow::Result;
use regex::Regex;
use serde::{Deserialize, Serialize};

use super::{
    rows::{About, ROWS},
    rules::{CONTAINERS, is_fit},
};
use crate::base::{
    config_file::{self, ConfigFile},
    suggest,
    text::wrap,
};

/// The file that is read where none is named.
pub const DEFAULT_FILE: &str = "/etc/jobtrace/software.toml";
/// Kinds of stacks, besides containers, that are told without a name, or have one of their own.
const NAMELESS: [&str; 4] = ["conda", "virtualenv", "uv", "pyenv"];

/// A `[[rule]]` of the file: a regular expression for paths, whose named groups give the answer: `name` and `version` of a
/// program, `version` of a library, `name`, `version` and `toolchain` of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteRule {
    /// What it tells: the kind of a program or stack, what a library belongs to.
    pub name: String,
    /// What it is about.
    pub about: About,
    /// The regular expression, as the `regex` crate reads it; it may match any part of a path.
    pub pattern: String,
    /// Whether what it matches computes on GPUs.
    #[serde(default)]
    pub gpu: bool,
}

/// A site's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Site {
    /// Rules, tried before the built-in ones.
    pub rule: Vec<SiteRule>,
    /// Folders whose software may be named besides the built-in ones; paths below homes, too.
    pub public: Vec<String>,
    /// Names that are told wherever they are, as regular expressions for the whole name.
    pub allow: Vec<String>,
    /// Names that are never told.
    pub deny: Vec<String>,
}

impl Site {
    /// What [`DEFAULT_FILE`] says; nothing where it is absent.
    ///
    /// # Errors
    /// When it cannot be read, or something in it means nothing; the message says where.
    pub fn read() -> Result<Self> {
        match config_file::read(None, DEFAULT_FILE)? {
            Some((text, path)) => Self::parse(&text, path),
            None => Ok(Self::default()),
        }
    }

    /// What the file of this `name` says.
    ///
    /// # Errors
    /// When it is no TOML, or something in it means nothing; the message says where.
    pub fn parse(text: &str, name: &Path) -> Result<Self> {
        let file = ConfigFile::parse(text, name)?;
        let site: Self = file.values(|_, reason| reason)?;
        let of_key = |key: &str| {
            let known = file.table().iter().find(|(name, _)| name.get_ref().as_ref() == key);
            known.map_or(0, |(name, _)| name.span().start)
        };
        let rules = file.table().get("rule").and_then(|rules| rules.get_ref().as_array());
        let of_rule = |at: usize| rules?.get(at).map(|rule| rule.span().start);
        let wrong = site.rule.iter().enumerate().filter_map(|(at, rule)| {
            Some((of_rule(at).unwrap_or_else(|| of_key("rule")), rule.compile().err()?))
        });
        let mut mistakes: Vec<_> = wrong.collect();
        for (key, patterns) in [("allow", &site.allow), ("deny", &site.deny)] {
            let wrong = patterns.iter().filter_map(|pattern| whole(pattern).err());
            mistakes.extend(wrong.map(|wrong| (of_key(key), wrong)));
        }
        let relative =
            site.public.iter().filter(|folder| !folder.starts_with('/') || *folder == "/");
        mistakes.extend(relative.map(|folder| {
            (of_key("public"), format!("`{folder}` is no folder below /: write its whole path"))
        }));
        file.refuse(&mistakes)?;
        Ok(site)
    }
}

/// Columns of the file that packages install.
const COLUMNS: usize = 96;

/// The commented file that packages install, which changes nothing: what may be set, and what the built-in rules tell.
pub fn default_file() -> String {
    let mut text = String::from(
        "\
# Names of the software that jobs run, for the agent's `census` and for `jobtrace run --software`.
# Told is what is known to be public; a user's own has no name. See PRIVACY.md.
#
# Folders whose software may be named, besides /usr, /opt, /apps, /sw, /cvmfs and the like:
#public = [\"/proj/tools\"]
#
# Names that are never told, and names that always are: regular expressions for whole names.
#deny = [\"institute-.*\", \"vasp.*\"]
#allow = [\"our-solver\"]
#
# Rules of one's own, tried before the built-in ones: regular expressions for any part of a path. `about` is program,
# library or stack; `name` is the kind of a program or stack, or what a library belongs to; with `gpu = true` it computes on
# GPUs. Named groups of the pattern give the answer: `name` (else the file's) and `version` of a program, `version` of a
# library, `name` (needed), `version` and `toolchain` of a stack.
#[[rule]]
#name = \"solver\"
#about = \"program\"
#pattern = '^/proj/solver/(?<version>[\\d.]+)/bin/(?<name>\\w+)$'
#
# What the built-in rules tell:
",
    );
    for (about, word) in
        [(About::Program, "programs"), (About::Library, "libraries"), (About::Stack, "stacks")]
    {
        let mut names: Vec<_> =
            ROWS.iter().filter(|row| row.about == about).map(|row| row.name).collect();
        names.dedup();
        let line = format!("{word}: {}", names.join(", "));
        for (at, line) in wrap(&line, COLUMNS).iter().enumerate() {
            let indent = if at == 0 { "" } else { "  " };
            let _ = writeln!(text, "#   {indent}{line}");
        }
    }
    text
}

impl SiteRule {
    /// Its pattern, ready to be tried.
    ///
    /// # Errors
    /// When it is no regular expression, has a group that means nothing or lacks one that is needed: what to say.
    pub fn compile(&self) -> Result<Regex, String> {
        let Self { name, .. } = self;
        if !is_fit(name) {
            let cure = "use letters, digits and _ . + -, 64 at most";
            return Err(format!("`{name}` is no name: {cure}"));
        }
        let regex =
            compile(&self.pattern).map_err(|reason| format!("pattern of `{name}`: {reason}"))?;
        let groups = self.groups();
        if let Some(group) = regex.capture_names().flatten().find(|group| !groups.contains(group)) {
            let (about, cure) =
                (self.about.in_words(), suggest::cure(group, groups.iter().copied()));
            return Err(format!("pattern of `{name}`: unknown group `{group}` of a {about}{cure}"));
        }
        // Without one it would be told as a user's own are: by its kind alone.
        let has_name = regex.capture_names().flatten().any(|group| group == "name");
        let needs_name = self.about == About::Stack
            && !NAMELESS.iter().chain(&CONTAINERS).any(|kind| kind == name);
        if needs_name && !has_name {
            return Err(format!(
                "pattern of `{name}`: no group tells the stack's name: write (?<name>…) around it, as in \
                 '^/proj/(?<name>[^/]+)/'"
            ));
        }
        Ok(regex)
    }

    /// Groups that its pattern may have: what is told of what it matches.
    fn groups(&self) -> &'static [&'static str] {
        match self.about {
            About::Program => &["name", "version"],
            // Its name is that of the rule, or its file's.
            About::Library => &["version"],
            About::Stack => &["name", "version", "toolchain"],
        }
    }
}

/// A regular expression for whole names.
///
/// # Errors
/// When `pattern` is none: what to say.
pub fn whole(pattern: &str) -> Result<Regex, String> {
    compile(pattern).map_err(|reason| format!("`{pattern}`: {reason}"))?;
    compile(&format!("^(?:{pattern})$")).map_err(|reason| format!("`{pattern}`: {reason}"))
}

fn compile(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|error| {
        let text = error.to_string();
        // The crate draws a picture of several lines; its last one is the reason.
        text.lines().next_back().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Site> {
        Site::parse(text, Path::new("software.toml"))
    }

    #[test]
    fn a_sites_file_is_read() {
        let site = parse(
            "public = [\"/proj/tools\"]\nallow = [\"our-.*\"]\ndeny = [\"secret\"]\n\
             [[rule]]\nname = \"solver\"\nabout = \"program\"\npattern = '/solve-(?<version>[\\d.]+)/'\ngpu = true\n",
        )
        .unwrap();
        assert_eq!((site.rule.len(), site.rule[0].about), (1, About::Program));
        assert_eq!((&*site.public[0], &*site.deny[0]), ("/proj/tools", "secret"));
        assert_eq!(parse("").unwrap(), Site::default());
    }

    #[test]
    fn the_file_of_packages_changes_nothing_and_its_examples_are_right() {
        let text = default_file();
        assert_eq!(parse(&text).unwrap(), Site::default());
        let is_example = |line: &&str| {
            let is_text = line.starts_with("# ") || *line == "#";
            line.starts_with('#') && !is_text
        };
        let examples: Vec<_> = text.lines().filter(is_example).map(|line| &line[1..]).collect();
        let site = parse(&examples.join("\n")).unwrap();
        assert_eq!((site.public.len(), site.deny.len(), site.allow.len()), (1, 2, 1));
        let path = "/proj/solver/2.1/bin/solve";
        assert_eq!(&site.rule[0].compile().unwrap().captures(path).unwrap()["version"], "2.1");
        assert!(text.contains("OpenBLAS") && text.contains("easybuild"), "{text}");
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        let rule = |rest: &str| format!("[[rule]]\nname = \"x\"\nabout = \"stack\"\n{rest}");
        let about = |about: &str, pattern: &str| {
            format!("[[rule]]\nname = \"x\"\nabout = \"{about}\"\npattern = '{pattern}'")
        };
        for (text, words) in [
            (rule("pattern = '/(?<name>x'"), "unclosed group"),
            (
                rule("pattern = '/(?<nam>x)'"),
                "unknown group `nam` of a stack, did you mean `name`?",
            ),
            (rule("pattern = 'x'\ncolour = 1"), "unknown field `colour`"),
            ("[[rule]]\nname = \"a b\"\nabout = \"stack\"\npattern = 'x'".into(), "is no name"),
            (
                rule("pattern = '/proj/(\\w+)/'"),
                "no group tells the stack's name: write (?<name>…)",
            ),
            (rule("pattern = '/proj/(?<version>1)/'"), "no group tells the stack's name"),
            (
                about("library", "(?<name>x)"),
                "unknown group `name` of a library, known are `version`",
            ),
            (about("program", "(?<toolchain>x)"), "unknown group `toolchain` of a program"),
            ("deny = ['(']".into(), "unclosed group"),
            ("public = ['home']".into(), "write its whole path"),
            ("public = ['/']".into(), "write its whole path"),
        ] {
            let error = format!("{:#}", parse(&text).unwrap_err());
            assert!(error.starts_with("software.toml:") && error.contains(words), "{error}");
        }
    }

    #[test]
    fn each_rule_that_is_wrong_is_named_at_its_own_place() {
        let rule = |name: &str, pattern: &str| {
            format!("[[rule]]\nname = \"{name}\"\nabout = \"stack\"\npattern = '{pattern}'\n")
        };
        let text = [rule("good", "/(?<name>x)/"), rule("bare", "/x/"), rule("worse", "(")].concat();
        let error = parse(&text).unwrap_err().to_string();
        let places: Vec<_> =
            error.lines().map(|line| &line[..line.find(" pat").unwrap()]).collect();
        assert_eq!(places, ["software.toml:5:1:", "software.toml:9:1:"], "{error}");
    }

    #[test]
    fn a_stack_that_has_no_name_of_its_own_needs_no_group() {
        for kind in ["conda", "virtualenv", "apptainer"] {
            let text =
                format!("[[rule]]\nname = \"{kind}\"\nabout = \"stack\"\npattern = '^/x/'\n");
            assert_eq!(parse(&text).unwrap().rule.len(), 1, "{kind}");
        }
    }
}
