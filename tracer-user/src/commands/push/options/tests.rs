//! The keys of the file and the options of the command line are the same, and have bounds.

use super::*;

#[test]
fn the_definition_and_the_struct_have_the_same_keys_and_defaults() {
    let every = Options {
        url: Some("u".into()),
        api: Some(Api::V1),
        database: Some("d".into()),
        retention_policy: Some("r".into()),
        org: Some("o".into()),
        bucket: Some("b".into()),
        user: Some("u".into()),
        password_file: Some("p".into()),
        token_file: Some("t".into()),
        ca: Some("c".into()),
        records_to: Some("d".into()),
        ..Options::defaults()
    };
    let table = toml::Table::try_from(&every).unwrap();
    let mut stored: Vec<_> = table.keys().cloned().collect();
    let mut known: Vec<_> = keys().into_iter().map(|(name, _)| name).collect();
    stored.sort();
    known.sort();
    assert_eq!(stored, known, "a key without a value above, or without an option");
    let defaults = toml::Table::try_from(Options::defaults()).unwrap();
    for (name, help) in keys() {
        if let Some(value) = defaults.get(&name) {
            let shown = value.to_string();
            let shown = shown.trim_matches('"');
            assert!(help.contains(&format!("[default: {shown}]")), "{name}: {help}: {shown}");
        }
    }
    assert_eq!(every.clone().or(Options::default()), every);
    assert_eq!(Options::default().or(every.clone()), every);
}

#[test]
fn limits_have_two_sides() {
    let url = Some("http://h".to_owned());
    let with = |change: fn(&mut Options)| {
        let mut options = Options { url: url.clone(), ..Options::default() };
        change(&mut options);
        options.settings().map_err(|error| error.to_string())
    };
    for (change, word) in [
        ((|o| o.url = None) as fn(&mut Options), "no server given"),
        (|o| o.timeout = Some(Time::seconds(0)), "--timeout must be from 1s to 600s"),
        (|o| o.timeout = Some(Time::seconds(601)), "--timeout"),
        (|o| o.every = Some(Time::seconds(0)), "--every"),
        (|o| o.every = Some(Time::seconds(3601)), "--every"),
        (|o| o.max_body = Some(Size(1)), "--max-body"),
        (|o| o.max_body = Some(Size(2 << 30)), "--max-body"),
    ] {
        let error = with(change).unwrap_err();
        assert!(error.contains(word), "{error}");
    }
    let settings = with(|o| o.timeout = Some(Time::seconds(600))).unwrap();
    assert_eq!(settings.timeout, Duration::from_secs(600));
    assert_eq!((settings.max_body, settings.retries), (9 << 20, 5));
}
