//! Help, and what is said to a command line that makes no sense.

use super::program::{end, jobtrace};

#[test]
fn every_command_helps_with_examples() {
    let help = end(jobtrace().arg("--help"));
    assert_eq!((help.status, help.stderr.as_str()), (0, ""));
    for command in [
        "run", "report", "compare", "jobs", "usage", "top", "findings", "agent", "doctor",
        "resolve",
    ] {
        assert!(help.stdout.contains(&format!("\n  {command} ")), "{}", help.stdout);
        let help = end(jobtrace().args([command, "--help"]));
        assert_eq!((help.status, help.stderr.as_str()), (0, ""), "{command}");
        assert!(help.stdout.contains("\nExamples:\n"), "{}", help.stdout);
        assert!(help.stdout.contains(&format!("jobtrace {command} ")), "{}", help.stdout);
        let short = end(jobtrace().args([command, "-h"]));
        assert!(short.status == 0 && short.stdout.lines().count() <= help.stdout.lines().count());
    }
    let version = end(jobtrace().arg("--version"));
    assert_eq!(version.stdout, format!("jobtrace {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn usage_errors_are_status_2_and_name_the_word() {
    for (arguments, word) in [
        (&["trace"][..], "trace"),
        (&["run"], "CMD"),
        (&["run", "true"], "true"),
        (&["run", "--"], "CMD"),
        (&["run", "--jsn", "x", "--", "true"], "--json"),
        (&["run", "--json"], "--json"),
        (&["run", "--interval", "9ms", "--", "true"], "shorter than 10 ms"),
        (&["run", "--interval", "2000m", "--", "true"], "longer than a day"),
        (&["run", "--interval", "1w", "--", "true"], "longer than a day"),
        (&["run", "--faults", "some", "--", "true"], "[possible values: major, full]"),
        (&["run", "--replay", "x", "--", "true"], "cannot be used with"),
        (&["run", "--replay", "x", "--record", "y"], "cannot be used with"),
        (&["run", "--replay", "x", "--interval", "1s"], "cannot be used with"),
        (&["run", "--interval", "soon", "--", "true"], "write for example 10s, 5m or 1h 30m"),
        (&["agent", "--check", "--print-config"], "cannot be used with"),
        (&["agent", "--interval", "soon"], "write for example 10s, 5m or 1h 30m"),
        (&["agent", "--hierarchy", "memry"], "did you mean `memory`?"),
        (&["doctor", "--yaml"], "--yaml"),
        (&["doctor", "me"], "me"),
        (&["report"], "JOB|FILE"),
        (&["jobs", "--csv", "--json"], "cannot be used with"),
        (&["jobs", "--sort", "age"], "[possible values: start, waste, elapsed]"),
        (&["usage", "--by", "moon"], "[possible values: user,"),
        (&["findings", "--again", "1d"], "--state <FILE>"),
        (&["report", "1", "--html"], "--html"),
        (&["report", "1", "--html", "x", "--json"], "cannot be used with"),
        (&["compare"], "JOB|FILE"),
        (&["compare", "1", "--size", "large"], "[possible values: allocated, used]"),
        (&["top", "--sort", "name"], "[possible values: cpu, waiting,"),
        (&["top", "--interval", "0.1"], "shorter than 500 ms"),
        (&["top", "--from", "x", "--socket", "y"], "cannot be used with"),
        (&["resolve"], "PATH|PID"),
        (&["resolve", "1", "2"], "2"),
        (&["resolve", "--tsv", "x", "1"], "cannot be used with"),
    ] {
        let ended = end(jobtrace().args(arguments));
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(word), "{arguments:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    }
}

#[test]
fn no_argument_at_all_is_answered_with_help_and_status_2() {
    let ended = end(&mut jobtrace());
    assert_eq!(ended.status, 2);
    assert!(ended.stderr.contains("Usage: jobtrace <COMMAND>"), "{}", ended.stderr);
}
