//! Text by display width: cleaning what comes from outside, cutting, wrapping; commands as text.

use std::ffi::OsStr;

use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthChar;

/// Stands for a character that must not reach a terminal.
const REFUSED: char = '\u{fffd}';
/// A space that no line breaks at.
const GLUE: &str = "\u{a0}";

/// Text from outside made harmless: no control, escape, direction, joining or invisible character is
/// left. White space becomes a space; without `unicode` all that is not ASCII becomes `?`.
pub fn clean(text: &str, unicode: bool) -> String {
    let mut base = false;
    let harmless = text.chars().map(|c| {
        // One accent on a letter is a name; a pile of them overprints the lines above.
        let accent = base && ('\u{300}'..='\u{36f}').contains(&c);
        base = c.is_alphabetic();
        match c {
            '\t' | '\n' | '\r' | ' ' => ' ',
            ' '..='~' => c,
            _ if !unicode || c.is_ascii() => '?',
            _ if accent || (is_visible(c) && !c.is_control()) => c,
            _ => REFUSED,
        }
    });
    harmless.collect()
}

/// Whether `c` takes room of its own. Direction marks, joiners and selectors do not.
fn is_visible(c: char) -> bool {
    let hidden = matches!(c, '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}')
        || matches!(c, '\u{e0000}'..='\u{e0fff}');
    !hidden && c.width().is_some_and(|width| width > 0)
}

/// Columns that `text` takes on a terminal.
pub fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// `text` in at most `columns`, its end replaced by `…` where it is longer.
pub fn truncate(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    // What readers see as one character is kept whole or not at all: an accent, a flag, a family.
    let kept = text.graphemes(true).take_while(|cluster| {
        let width = width(cluster);
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    });
    let mut cut: String = kept.collect();
    if columns > 0 {
        cut.push('…');
    }
    cut
}

/// Columns from which there is room for both ends of a name.
const BOTH_ENDS: usize = 20;

/// `text` in at most `columns`, `…` in place of what is before its last two thirds where it is longer: names that begin
/// alike are told apart by their ends.
pub fn middle(text: &str, columns: usize) -> String {
    if width(text) <= columns || columns < BOTH_ENDS {
        return truncate(text, columns);
    }
    let begin = truncate(text, columns / 3);
    let left = columns - width(&begin);
    begin + end_of(text, left)
}

/// The end of `text` that `columns` have room for.
pub fn end_of(text: &str, columns: usize) -> &str {
    let mut left = columns;
    let kept = text.graphemes(true).rev().take_while(|cluster| {
        let width = width(cluster);
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    });
    let bytes: usize = kept.map(str::len).sum();
    &text[text.len() - bytes..]
}

/// `text` on the right of `columns`.
pub fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// `text` on the left of `columns`, cut where it is longer.
pub fn left(text: &str, columns: usize) -> String {
    let cut = truncate(text, columns);
    let room = columns - width(&cut);
    cut + &" ".repeat(room)
}

/// `text` in lines of at most `columns`, broken at spaces but not between a number and its unit; a
/// longer word is cut.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let piece = |piece: &String| truncate(piece, columns).replace(' ', GLUE);
    let glued = pieces(text).iter().map(piece).collect::<Vec<_>>().join(" ");
    let options = Options::new(columns)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    let lines = textwrap::wrap(&glued, options);
    let lines = lines.iter().map(|line| line.replace(GLUE, " "));
    lines.filter(|line| !line.is_empty()).collect()
}

/// A command as a shell would take it: words with anything but plain characters in quotes.
pub fn command_line(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    let quote = |word: &OsStr| {
        let word = word.to_string_lossy();
        if !word.is_empty() && word.chars().all(plain) {
            word.into_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.into_iter().map(|word| quote(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Words, a number together with the word after it.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut number = false;
    for word in text.split_whitespace() {
        match pieces.last_mut() {
            Some(last) if number => {
                last.push(' ');
                last.push_str(word);
                number = false;
            }
            // The seconds of `1 min 23 s` stay with the minutes.
            Some(last)
                if is_number(word) && [" min", " h", " d"].iter().any(|u| last.ends_with(u)) =>
            {
                last.push(' ');
                last.push_str(word);
                number = true;
            }
            _ => {
                pieces.push(word.to_owned());
                number = is_number(word);
            }
        }
    }
    pieces
}

/// Whether `word` is a number that wants its unit beside it.
fn is_number(word: &str) -> bool {
    word.len() < 10 && word.starts_with(|c: char| c.is_ascii_digit())
}

/// Line and column, both from 1, of the byte at `place`.
pub fn position(text: &str, place: usize) -> (usize, usize) {
    let before = text.get(..place).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_made_harmless() {
        for (text, unicode, cleaned) in [
            ("train.py", true, "train.py"),
            ("a\nb\tc", true, "a b c"),
            ("\x1b[31mred\x07", true, "?[31mred?"),
            ("\u{9b}31m", true, "\u{fffd}31m"),
            ("exe\u{202e}gpj.", true, "exe\u{fffd}gpj."),
            ("a\u{301}\u{301}", true, "a\u{301}\u{fffd}"),
            ("\u{301}", true, "\u{fffd}"),
            ("größe 計算", true, "größe 計算"),
            ("größe", false, "gr??e"),
        ] {
            assert_eq!(clean(text, unicode), cleaned, "{text:?}");
        }
    }

    #[test]
    fn cutting_counts_columns() {
        for (text, columns, cut) in [
            ("abcd", 4, "abcd"),
            ("abcde", 4, "abc…"),
            ("計算計算", 4, "計…"),
            ("ab", 0, ""),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
            ("🇫🇷🇩🇪🇳🇱", 4, "🇫🇷…"),
            ("👩\u{200d}👧x", 4, "…"),
        ] {
            assert_eq!(truncate(text, columns), cut);
        }
    }

    #[test]
    fn the_end_of_a_long_name_is_kept() {
        let name = "read on gpfs (/mnt/projects/number-07)";
        assert_eq!(middle(name, 38), name);
        assert_eq!(middle(name, 21), "read o…cts/number-07)");
        assert_eq!(middle(name, 19), "read on gpfs (/mnt…");
        let wide = middle("計算計算計算計算計算計算", 21);
        assert_eq!(wide, "計算計…算計算計算計算");
    }

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(wrap("it took 12 ms for 3 s", 10), ["it took", "12 ms for", "3 s"]);
        assert_eq!(wrap("after 1 min 23 s", 12), ["after", "1 min 23 s"]);
        assert_eq!(wrap("abcdefghijkl m", 6), ["abcde…", "m"]);
        assert_eq!(wrap("a-b c\u{a0}d  e", 3), ["a-b", "c d", "e"]);
        assert_eq!(wrap("計算 計算", 5), ["計算", "計算"]);
        assert!(wrap(" ", 5).is_empty());
    }

    #[test]
    fn commands_read_as_a_shell_takes_them() {
        let command = ["/usr/bin/sh", "-c", "echo it's $HOME", ""];
        assert_eq!(command_line(command), r"/usr/bin/sh -c 'echo it'\''s $HOME' ''");
        assert_eq!(command_line(["dd", "if=/dev/zero", "bs=4K"]), "dd if=/dev/zero bs=4K");
    }
}
