//! The configuration as administrators meet it: what is refused and in which words, what is printed,
//! what SIGHUP takes over.

use std::{fs, path::Path};

use clap::{Args, FromArgMatches};
use jobtrace::{
    base::values::{Size, Time},
    commands::agent::config::{
        Config, Effect, Flags, JobHierarchy, KEYS, LineStyle, Profile, Statistics, load, parse,
        reload_difference,
    },
    probes::FaultMode,
    resolve::SiteRule,
};
use proptest::prelude::*;

/// What the command line gives of the configuration.
fn flags(arguments: &[&str]) -> Flags {
    let command = Flags::augment_args(clap::Command::new("agent"));
    let matches = command.get_matches_from([&["agent"], arguments].concat());
    Flags::from_arg_matches(&matches).unwrap()
}

fn refusal(text: &str) -> String {
    parse(text, Path::new("jobtrace.toml")).expect_err(text).to_string()
}

#[test]
fn everything_can_be_set() {
    let text = r#"
        cluster = "c1"
        interval = "30s"
        faults = "full"
        hierarchy = "memory"
        slots = 128
        pin = true
        [spool]
        max_bytes = "500MB"
        max_age = "1day"
        [export]
        style = "clustercockpit"
        bucket_style = "vmrange"
        [export.by_manager]
        slurm = "histogram"
        [export.by_job]
        4242 = "full"
        [overhead]
        max_ratio = 0.02
        statistics = "windows"
        [jobs]
        ignore = ["session"]
        [[rule]]
        name = "own"
        pattern = '^/batch/(?<job>\d+)'
        manager = "batch"
    "#;
    let config = parse(text, Path::new("x")).unwrap();
    assert_eq!(config.cluster, "c1");
    assert_eq!(config.interval, Time::seconds(30));
    assert_eq!(config.faults, FaultMode::Full);
    assert_eq!(config.hierarchy, JobHierarchy::V1("memory".into()));
    assert_eq!((config.slots, config.spare_slots, config.pin), (128, 64, true));
    assert_eq!(config.spool.max_bytes, Size(500_000_000));
    assert_eq!(config.spool.dir, Path::new("/var/spool/jobtrace"));
    assert_eq!(
        (Config::default().export.style, config.export.style),
        (LineStyle::Jobtrace, LineStyle::Clustercockpit)
    );
    assert_eq!(config.export.by_manager["slurm"], Profile::Histogram);
    assert_eq!(config.export.by_job["4242"], Profile::Full);
    assert_eq!(config.overhead.statistics, Statistics::Windows);
    assert_eq!(config.jobs.ignore, ["session"]);
    assert_eq!(config.rule[0].name, "own");
}

#[test]
fn nothing_set_gives_the_defaults() {
    assert_eq!(parse("", Path::new("x")).unwrap(), Config::default());
    assert_eq!(parse("[spool]\n[export.by_job]\n", Path::new("x")).unwrap(), Config::default());
}

#[test]
fn what_is_wrong_is_named_with_its_place_and_its_cure() {
    for (text, words) in [
        (
            "intervall = \"10s\"",
            &["jobtrace.toml:1:1: ", "`intervall`", "did you mean `interval`?"][..],
        ),
        ("\n[spool]\n  max_byte = 1", &["jobtrace.toml:3:3: ", " in `spool`", "`max_bytes`"]),
        ("[export]\nprofil = 1", &[":2:1: ", "did you mean `profile`?"]),
        ("[overhed]\nmax_ratio = 1", &[":1:2: ", "did you mean `overhead`?"]),
        ("[[rule]]\nname = \"a\"\npatern = \"b\"", &[":3:1: ", " in `rule`", "`pattern`"]),
        ("max_ratio = 0.5", &["did you mean `overhead.max_ratio`, in the table `[overhead]`?"]),
        ("[jobs]\nintervall = 5", &[":2:1: ", "did you mean `interval` at the top of the file"]),
        ("[jobs]\ncolour = 1", &["unknown key `colour` in `jobs`, known are `ignore`"]),
        (
            "[jobs]\nignore = [\"sesion\"]",
            &[":2:11: ", "no rule has the manager `sesion`, did you"],
        ),
        ("interval = 1.5", &[":1:12: ", "`interval` = 1.5: invalid type", "\"1s\" to \"1h\""]),
        ("interval = \"soon\"", &["`interval` = \"soon\"", "write for example 10s, 5m or 1h 30m"]),
        ("interval = \"1500ms\"", &[":1:12: ", "`interval`: 1s 500ms", "whole number of seconds"]),
        ("interval = -1", &["`interval` = -1"]),
        ("slots = 2000", &[":1:9: ", "`slots`: 2000", "allowed: 1 to 1023"]),
        ("slots = -1", &["`slots` = -1", "allowed: 1 to 1023"]),
        ("slots = \"many\"", &["`slots` = \"many\"", "allowed: 1 to 1023"]),
        ("slots = 16", &["jobtrace.toml: `spare_slots`: 64", "`slots`, which is 16"]),
        ("pin = 1", &["`pin` = 1", "true or false"]),
        ("faults = \"minor\"", &["`faults` = \"minor\"", "allowed: \"major\" or \"full\""]),
        ("hierarchy = \"memroy\"", &[":1:13: ", "did you mean `memory`?"]),
        ("[spool]\ndir = \"spool\"", &[":2:7: ", "`spool.dir`", "does not begin with /"]),
        ("[records]\ndir = \"r\"", &[":2:7: ", "`records.dir`", "does not begin with /"]),
        (
            "[spool]\ndir = \"/s\"\n[records]\ndir = \"/s/\"",
            &[":4:7: ", "`records.dir`", "/s/ is the spool's folder"],
        ),
        (
            "[records]\ndir = \"/var/spool/jobtrace/outbox/records\"",
            &[":2:7: ", "outbox/records is the spool's folder; allowed: an absolute path"],
        ),
        ("[spool]\nmax_bytes = \"1 GiX\"", &["`spool.max_bytes` = \"1 GiX\"", "\"1 MiB\" or more"]),
        ("[overhead]\nmax_ratio = 2", &["`overhead.max_ratio`", "0.0001 to 1"]),
        ("[overhead]\npatience = 0", &[":2:12: ", "`overhead.patience`", "1 to 1000"]),
        ("[overhead]\nback_off = \"2h\"", &["`overhead.back_off`: 2h", "\"1s\" to \"1h\""]),
        ("[gpu]\nperiod = \"10s\"", &["`gpu.period`", "200ms"]),
        ("[gpu]\nperiod = \"10ms\"", &["`gpu.period`", "10ms"]),
        ("[gpu]\nretry = \"1s\"", &["`gpu.retry`", "10s"]),
        ("[gpu]\nheld_dir = \"gpustat\"", &["`gpu.held_dir`", "an absolute path"]),
        ("[gpu]\nsamples = true", &["did you mean `sample`"]),
        ("[overhead]\nmax_ratio = nan", &["`overhead.max_ratio`", "NaN"]),
        (
            "[export.by_manager]\nslurm = \"all\"",
            &["`export.by_manager.slurm` = \"all\"", "\"summary\""],
        ),
        ("[[rule]]\nname = \"a\"\npattern = \"(\"", &["pattern of `a`", "unclosed group"]),
        ("[[rule]]\nname = \"a\"\npattern = \"x\"", &["has no group `(?<job>...)`"]),
        // The agent would not start with it.
        ("[[rule]]\nname = \"a\"\npattern = \"(?<job>x)\"", &["`a` names no manager"]),
        ("[[rule]]\nname = \"a\"\npattern = \"(?<jbo>x)\"", &["unknown group `jbo`", "`job`"]),
        ("[[rule]]\nname = \"a\"", &[":1:1: ", "missing field `pattern`"]),
        ("slots = 1\nslots = 2", &[":2:1: ", "duplicate key"]),
        ("slots = ", &[":1:"]),
        ("spool = [\"/x\", \"2 MiB\"]", &[":1:1: ", "`spool` is a table: write [spool]"]),
        ("[[export]]\nprofile = \"full\"", &["`export` is a table: write [export]"]),
        ("rule = [[\"a\", \"^/x\"]]", &["each `rule` is a table: write [[rule]]"]),
        ("[export.by_job]\n4242.0 = \"full\"", &[":2:1: ", "is \"4242.0\", in quotes"]),
        ("x\u{1b}]0;y\u{7} = 1", &["jobtrace.toml:1:"]),
        ("\"a\\u001bb\" = 1", &["unknown key `a?b`"]),
    ] {
        let said = refusal(text);
        for word in words {
            assert!(said.contains(word), "{text:?}\n{said}\nlacks {word:?}");
        }
        assert!(!said.contains('\u{1b}'), "{said:?}");
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let said = refusal("colour = 1\nintervall = 2\n[spool]\nmax_age = 3\nmax_bites = 4");
    assert_eq!(said.lines().count(), 3, "{said}");
    let said = refusal("interval = \"2h\"\nslots = 0\nspare_slots = 9");
    assert_eq!(said.lines().count(), 3, "{said}");
}

#[test]
fn the_default_file_holds_every_key_and_sets_none() {
    let text = Config::default_file().unwrap();
    assert_eq!(parse(&text, Path::new("x")).unwrap(), Config::default());
    for line in text.lines() {
        assert!(line.is_empty() || line.starts_with(['#', '[']), "{line}");
        assert!(line.len() <= 100, "{line}");
    }
    // Taken out of its comments it is the defaults again, and a rule and two profiles as examples.
    let set: String = text
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(value) if !value.starts_with(' ') => format!("{value}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let mut config = parse(&set, Path::new("x")).unwrap();
    assert_eq!((config.rule.len(), config.export.by_manager.len()), (1, 1));
    config.rule.clear();
    config.export.by_manager.clear();
    config.export.by_job.clear();
    assert_eq!(config, Config::default());
}

#[test]
fn flags_stand_above_the_file_and_are_checked_too() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.toml");
    fs::write(&file, "cluster = \"file\"\npin = true\nslots = 100\n").unwrap();
    let given = flags(&["--cluster=flag", "--no-pin", "--spool=/s", "--profile=full"]);
    let config = load(Some(&file), &given).unwrap();
    assert_eq!((config.cluster.as_str(), config.pin, config.slots), ("flag", false, 100));
    assert_eq!(
        (config.spool.dir.as_path(), config.export.profile),
        (Path::new("/s"), Profile::Full)
    );
    let said = load(Some(&file), &flags(&["--slots=5000"])).unwrap_err().to_string();
    assert!(said.contains("command-line options: `slots`: 5000"), "{said}");
    for (pins, pin) in
        [(&["--pin"][..], true), (&["--pin", "--no-pin"], false), (&["--no-pin", "--pin"], true)]
    {
        assert_eq!(load(Some(&file), &flags(pins)).unwrap().pin, pin, "{pins:?}");
    }
}

#[test]
fn a_named_file_must_exist() {
    let said = load(Some(Path::new("/nowhere/a.toml")), &Flags::default()).unwrap_err();
    assert!(format!("{said:#}").contains("cannot read /nowhere/a.toml: No such file"), "{said:#}");
}

#[test]
fn reload_takes_over_what_can_be_and_names_the_rest() {
    let old = Config::default();
    let new = parse(
        "interval = \"30s\"\nslots = 128\n[spool]\ndir = \"/other\"\nmax_files = 5\n[export]\nprofile = \"full\"",
        Path::new("x"),
    )
    .unwrap();
    let difference = reload_difference(&old, &new);
    assert_eq!(difference.now, ["interval", "spool.max_files", "export.profile"]);
    assert_eq!(difference.restart, ["slots", "spool.dir"]);
    assert_eq!(
        difference.to_string(),
        "changed: interval, spool.max_files, export.profile; these need a restart: slots, spool.dir"
    );
    let together = old.reloaded(&new).unwrap();
    let left = reload_difference(&old, &together);
    assert_eq!((left.now, left.restart), (difference.now, vec![]));
    assert_eq!(reload_difference(&new, &together).restart, difference.restart);
    assert_eq!(reload_difference(&old, &old).to_string(), "nothing changed");
    assert!(KEYS.iter().any(|key| key.effect == Effect::Reload));
}

fn config() -> impl Strategy<Value = Config> {
    let text = "[ -~äß\"'\\\\#\n]{0,12}";
    let map = prop::collection::btree_map(text, Just(Profile::Histogram), 0..3);
    let top = (text, 1..=3600_u64, 1..=1023_u32, any::<bool>(), "(auto|v2|memory|pids)");
    let rest = (1_u64 << 20..=i64::MAX as u64, 60..1_000_000_u64, 0.0001..=1.0_f64, map);
    let ignored = prop::sample::subsequence(vec!["pbs", "session", "slurm"], 0..=3);
    (top, rest, ignored, any::<bool>()).prop_map(
        |((cluster, seconds, slots, pin, hierarchy), (bytes, age, ratio, map), ignore, rule)| {
            let mut config = Config { cluster, slots, pin, ..Config::default() };
            config.interval = Time::seconds(seconds);
            config.spare_slots = slots / 2;
            config.hierarchy = hierarchy.parse().unwrap();
            config.spool.max_bytes = Size(bytes);
            config.spool.max_age = Time::seconds(age);
            config.overhead.max_ratio = ratio;
            config.export.by_job = map;
            config.jobs.ignore = ignore.into_iter().map(str::to_owned).collect();
            if rule {
                config.rule.push(SiteRule {
                    name: "a\"b".into(),
                    pattern: r"^/x\.(?<job>\d+)'''".into(),
                    manager: Some("m".into()),
                    not_a_job: false,
                });
            }
            config
        },
    )
}

proptest! {
    /// What `--print-config` prints is the same configuration again.
    #[test]
    fn printed_it_parses_to_the_same(config in config()) {
        let text = config.to_text().unwrap();
        let parsed = parse(&text, Path::new("printed"));
        prop_assert!(parsed.is_ok(), "{parsed:?}\n{text}");
        prop_assert_eq!(parsed.unwrap(), config, "{}", text);
    }

    /// No text makes the reader fall over, and what it says is without control characters.
    #[test]
    fn garbage_is_refused_in_words(text in "([a-z_]{1,8}|[\\[\\]=\".{}\n]|[0-9]{1,4}|\\PC){0,30}") {
        if let Err(said) = parse(&text, Path::new("x")) {
            let said = said.to_string();
            prop_assert!(said.chars().all(|c| c == '\n' || !c.is_control()), "{said:?}");
        }
    }
}
