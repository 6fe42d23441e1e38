//! How standard error and output may be written to. The only file here that looks at the outside world, and all
//! it looks at comes together in [`Style::for_stderr`] and [`Style::for_stdout`].

use std::{io::IsTerminal, os::fd::AsFd};

use super::Style;

/// Where neither the terminal nor the environment tells a width.
const DEFAULT_WIDTH: usize = 80;

impl Style {
    /// What suits standard error now: its width, colour and character set.
    pub fn for_stderr() -> Self {
        Self::of(std::io::stderr())
    }

    /// What suits standard output now.
    pub fn for_stdout() -> Self {
        Self::of(std::io::stdout())
    }

    fn of(stream: impl AsFd + IsTerminal) -> Self {
        let columns = rustix::termios::tcgetwinsize(&stream).ok().map(|size| size.ws_col);
        decide(columns, stream.is_terminal(), |name| std::env::var(name).ok())
    }
}

/// The style for a terminal of so many columns (0 or `None`: it does not say) and an environment.
fn decide(columns: Option<u16>, is_terminal: bool, env: impl Fn(&str) -> Option<String>) -> Style {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    let told = columns.filter(|columns| *columns > 0).map(usize::from);
    let wished = || set("COLUMNS")?.parse().ok().filter(|columns| *columns > 0);
    let term = set("TERM").unwrap_or_default();
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| set(name));
    let locale = locale.unwrap_or_default().to_ascii_lowercase();
    let utf8 = locale.contains("utf-8") || locale.contains("utf8");
    Style {
        width: told.or_else(wished).unwrap_or(DEFAULT_WIDTH),
        // https://no-color.org: any value but an empty one.
        color: is_terminal && set("NO_COLOR").is_none() && !matches!(&*term, "" | "dumb"),
        // The font of the kernel's console has no heights of blocks.
        unicode: utf8 && term != "linux",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_and_the_environment_decide() {
        let style = |width, color, unicode| Style { width, color, unicode };
        let utf8 = ("LANG", "de_DE.UTF-8");
        let xterm = ("TERM", "xterm-256color");
        for (columns, is_terminal, env, expected) in [
            (Some(120), true, &[utf8, xterm][..], style(120, true, true)),
            (Some(0), true, &[utf8, xterm, ("COLUMNS", "66")], style(66, true, true)),
            (None, false, &[utf8, xterm, ("COLUMNS", "0")], style(80, false, true)),
            (None, false, &[("COLUMNS", "wide")], style(80, false, false)),
            (Some(80), true, &[utf8, xterm, ("NO_COLOR", "1")], style(80, false, true)),
            (Some(80), true, &[utf8, xterm, ("NO_COLOR", "")], style(80, true, true)),
            (Some(80), true, &[utf8, ("TERM", "dumb")], style(80, false, true)),
            (Some(80), true, &[utf8, ("TERM", "linux")], style(80, true, false)),
            (Some(80), true, &[utf8, xterm, ("LC_ALL", "C")], style(80, true, false)),
            (Some(80), true, &[xterm, ("LC_CTYPE", "C.utf8")], style(80, true, true)),
        ] {
            let get = |name: &str| {
                env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(decide(columns, is_terminal, get), expected, "{env:?}");
        }
    }
}
