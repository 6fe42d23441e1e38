//! The nearest known name to one that is not known.

/// The known name that `word` most likely meant; `None` where none is near.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the letters wrong is a slip, more is another word.
    let limit = word.chars().count().div_ceil(3).max(1);
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&word.to_lowercase(), name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// The cure for an unknown `word`, with its comma: the nearest of `known`, or all of them.
pub fn cure<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(word, known.clone()) {
        Some(name) => format!(", did you mean `{name}`?"),
        None => {
            let names: Vec<_> = known.into_iter().map(|name| format!("`{name}`")).collect();
            format!(", known are {}", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_mended_and_other_words_are_not() {
        let known = ["interval", "slots", "spare_slots", "faults", "pin"];
        for (word, name) in [
            ("intervall", Some("interval")),
            ("Interval", Some("interval")),
            ("intreval", Some("interval")),
            ("slot", Some("slots")),
            ("spare-slots", Some("spare_slots")),
            ("nip", None),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), name, "{word}");
        }
        assert_eq!(cure("x", ["a", "b"]), ", did you mean `a`?");
        assert_eq!(cure("colour", ["aa", "bb"]), ", known are `aa`, `bb`");
    }
}
