//! A line of coloured pieces, and the only place that knows ANSI codes and ASCII stand-ins.

use super::Style;
use crate::base::text;

/// What a piece of text is to the reader; the colour follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    Plain,
    /// Headings and names.
    Strong,
    /// What explains, and may be skipped.
    Faint,
    /// Work done.
    Good,
    /// Time or room lost.
    Warn,
    /// Failures, and time lost to the slowest things.
    Bad,
}

impl Tone {
    const fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Strong => Some("\x1b[1m"),
            Self::Faint => Some("\x1b[2m"),
            Self::Good => Some("\x1b[32m"),
            Self::Warn => Some("\x1b[33m"),
            Self::Bad => Some("\x1b[31m"),
        }
    }
}

const RESET: &str = "\x1b[0m";

/// One line, in pieces.
#[derive(Clone, Debug, Default)]
pub struct Line {
    pieces: Vec<(Tone, String)>,
}

impl Line {
    /// An empty line.
    pub fn new() -> Self {
        Self::default()
    }

    /// With `text` of `tone` at its end.
    pub fn with(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.pieces.push((tone, text.into()));
        self
    }

    /// With ordinary text at its end.
    pub fn plain(self, text: impl Into<String>) -> Self {
        self.with(Tone::Plain, text)
    }

    /// With a heading at its end.
    pub fn strong(self, text: impl Into<String>) -> Self {
        self.with(Tone::Strong, text)
    }

    /// With an explanation at its end.
    pub fn faint(self, text: impl Into<String>) -> Self {
        self.with(Tone::Faint, text)
    }

    /// The line as the terminal takes it: cut to the style's width, no space at its end.
    pub fn render(&self, style: &Style) -> String {
        let mut out = String::new();
        for (tone, shown) in self.shown(style) {
            match tone.code().filter(|_| style.color && !shown.trim().is_empty()) {
                Some(code) => out.extend([code, &shown, RESET]),
                None => out.push_str(&shown),
            }
        }
        out
    }

    /// Its pieces as the style shows them: cut to its width, no space at the end, what is not ASCII replaced where
    /// only that is shown.
    pub fn shown(&self, style: &Style) -> Vec<(Tone, String)> {
        let mut left = style.width;
        let mut shown = Vec::new();
        let last = self.pieces.iter().rposition(|(_, piece)| !piece.trim_end().is_empty());
        for (index, (tone, piece)) in self.pieces.iter().enumerate() {
            if Some(index) > last {
                break;
            }
            let piece = if Some(index) == last { piece.trim_end() } else { piece };
            let cut = text::truncate(piece, left);
            left -= text::width(&cut);
            shown.push((*tone, if style.unicode { cut } else { cut.chars().map(ascii).collect() }));
        }
        shown
    }
}

/// The ASCII character for each that this module's neighbours write; one column each.
fn ascii(c: char) -> char {
    match c {
        '\0'..='~' => c,
        'µ' => 'u',
        '×' => 'x',
        '…' => '~',
        '–' => '-',
        '•' => '*',
        // Heights of a plot.
        '▁' => '.',
        '▂' => ':',
        '▃' => '-',
        '▄' => '=',
        '▅' => '+',
        '▆' => '*',
        '▇' => '%',
        '█' => '#',
        // The end of a bar.
        '▏' | '▎' | '▍' => '|',
        '▌' | '▋' | '▊' | '▉' => '#',
        _ => '?',
    }
}

/// Lines of `content` behind a label of `indent` columns; the label is shown once.
pub fn labelled(label: &str, indent: usize, tone: Tone, content: &str, style: &Style) -> Vec<Line> {
    let lines = text::wrap(content, style.width.saturating_sub(indent).max(1));
    let line = |(index, line): (usize, &String)| {
        let label = if index == 0 { label } else { "" };
        Line::new().strong(text::left(label, indent)).with(tone, line)
    };
    lines.iter().enumerate().map(line).collect()
}
