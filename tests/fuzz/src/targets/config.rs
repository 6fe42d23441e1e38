//! jobtrace.toml: what is accepted means the same when it is printed, and a refusal names the file, can
//! be shown and is not endless.

use std::path::Path;

use jobtrace::{
    base::values::{Size, Time},
    commands::agent::config::parse,
    resolve::Resolver,
};

use crate::split::text;

/// Longest refusal for one byte of the file.
const WORDS_BYTES: usize = 1000;

pub fn run(data: &[u8]) {
    let text = text(data);
    for word in text.split(['"', '\n']).take(8) {
        if let Ok(time) = word.parse::<Time>() {
            assert_eq!(time.to_string().parse(), Ok(time), "{word:?}");
        }
        if let Ok(size) = word.parse::<Size>() {
            assert_eq!(size.to_string().parse(), Ok(size), "{word:?}");
        }
    }
    match parse(&text, Path::new("t.toml")) {
        Ok(config) => {
            let printed = config.to_text().expect("what was read can be printed");
            let again = parse(&printed, Path::new("printed.toml"));
            let again = again.unwrap_or_else(|error| panic!("{error:#}: {printed}"));
            assert_eq!(again, config, "{printed}");
            Resolver::new(&config.rule).expect("rules that were accepted");
        }
        Err(error) => {
            let words = format!("{error:#}");
            assert!(words.contains("t.toml"), "{words:?}");
            let shown = words.chars().all(|c| c == '\n' || !c.is_control());
            assert!(shown, "{words:?}");
            assert!(words.len() <= WORDS_BYTES * (data.len() + 1), "{} bytes", words.len());
        }
    }
}
