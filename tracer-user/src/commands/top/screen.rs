//! The terminal: taken over, drawn on, and given back as it was, however the program ends but by SIGKILL.

use std::{
    io::{self, IsTerminal},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context, Result, ensure};
use ratatui::{
    DefaultTerminal, Frame,
    layout::Rect,
    style::{Color, Modifier, Style as Look},
    text::{Line as Drawn, Span},
};

use super::state::{State, Window};
use crate::{
    base::text::clean,
    view::{
        Style,
        line::{Line, Tone},
    },
};

/// Signals that end it.
const ENDING: [i32; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// The number of the signal that came; 0: none did.
fn signal() -> &'static Arc<AtomicUsize> {
    static SIGNAL: OnceLock<Arc<AtomicUsize>> = OnceLock::new();
    SIGNAL.get_or_init(Arc::default)
}

/// The signal that is to end the program, if one came.
pub fn ended_by() -> Option<u8> {
    u8::try_from(signal().load(Ordering::Relaxed)).ok().filter(|number| *number > 0)
}

/// Whether there is a terminal to draw on.
///
/// # Errors
/// When there is none, or one that does not understand how to move about on it.
pub fn check_terminal() -> Result<()> {
    ensure!(io::stdout().is_terminal(), "standard output is no terminal");
    let term = std::env::var("TERM").unwrap_or_default();
    ensure!(!matches!(&*term, "" | "dumb"), "TERM names none that can be drawn on");
    Ok(())
}

/// The terminal while it is ours.
pub struct Screen {
    terminal: DefaultTerminal,
    style: Style,
}

impl Screen {
    /// Takes it over. It is given back when the value goes, and when the program panics.
    ///
    /// # Errors
    /// When the terminal refuses.
    pub fn open(style: Style) -> Result<Self> {
        for number in ENDING {
            signal_hook::flag::register_usize(number, Arc::clone(signal()), number as usize)
                .context("cannot catch the signals that end it")?;
        }
        let terminal = ratatui::try_init().context("cannot take over the terminal")?;
        Ok(Self { terminal, style })
    }

    /// Draws what there is to see, as large as the terminal is now.
    ///
    /// # Errors
    /// When the terminal refuses.
    pub fn draw(&mut self, state: &mut State) -> Result<()> {
        let style = self.style;
        let drawn = self.terminal.draw(|frame| {
            let area = frame.area();
            let window = state.window(area.width.into(), area.height.into());
            draw(frame, &window, &style);
        });
        drawn.map(drop).context("cannot draw on the terminal")
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Where that fails there is no terminal any more.
        let _ = ratatui::try_restore();
    }
}

fn draw(frame: &mut Frame, window: &Window, style: &Style) {
    let area = frame.area();
    let style = Style { width: area.width.into(), ..*style };
    let mut row = area.y;
    let mut put = |line: Drawn| {
        if row < area.bottom() {
            frame.render_widget(line, Rect { y: row, height: 1, ..area });
            row += 1;
        }
    };
    let title = Line::new().strong("jobtrace").plain("  ").plain(&window.title);
    put(drawn(&title, &style));
    if let Some(error) = &window.error {
        let error = clean(error, style.unicode);
        put(drawn(&Line::new().with(Tone::Bad, error), &style));
    }
    for (at, line) in window.lines.iter().enumerate() {
        let drawn = drawn(line, &style);
        put(match window.chosen == Some(at) {
            true => drawn.style(Look::new().add_modifier(Modifier::REVERSED)),
            false => drawn,
        });
    }
    let keys = drawn(&Line::new().faint(&window.keys), &style);
    if let Some(last) = area.bottom().checked_sub(1).filter(|last| *last > area.y) {
        frame.render_widget(keys, Rect { y: last, height: 1, ..area });
    }
}

/// A line of ours as ratatui's.
fn drawn(line: &Line, style: &Style) -> Drawn<'static> {
    let span = |(tone, text): (Tone, String)| {
        let look = if style.color { look(tone) } else { Look::new() };
        Span::styled(text, look)
    };
    line.shown(style).into_iter().map(span).collect::<Vec<_>>().into()
}

fn look(tone: Tone) -> Look {
    match tone {
        Tone::Plain => Look::new(),
        Tone::Strong => Look::new().add_modifier(Modifier::BOLD),
        Tone::Faint => Look::new().add_modifier(Modifier::DIM),
        Tone::Good => Look::new().fg(Color::Green),
        Tone::Warn => Look::new().fg(Color::Yellow),
        Tone::Bad => Look::new().fg(Color::Red),
    }
}
