//! The terminal: taken over, drawn on, and given back as it was, however the program ends but by SIGKILL.

pub mod state;
mod watch;

use std::{
    fs::File,
    io::{self, BufWriter, IsTerminal, Write},
    os::fd::{AsFd, BorrowedFd},
    panic,
};

use anyhow::{Context, Result, ensure};
use ratatui::{
    Frame, Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor::Show,
        execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
    },
    layout::Rect,
    style::{Color, Modifier, Style as Look},
    text::{Line as Drawn, Span},
};

use crate::{
    base::text::clean,
    view::{
        Style,
        line::{Line, Tone},
    },
};
use state::{State, Window};
pub use watch::{SHORTEST, watch};

/// A standard stream that is a terminal to draw on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

impl Stream {
    /// Itself, if it is one.
    ///
    /// # Errors
    /// When it is none, or the terminal does not understand how to move about on it.
    pub fn checked(self) -> Result<Self> {
        match self {
            Self::Output => ensure!(io::stdout().is_terminal(), "standard output is no terminal"),
            Self::Error => ensure!(
                io::stderr().is_terminal(),
                "neither standard output nor standard error is a terminal"
            ),
        }
        let term = std::env::var("TERM").unwrap_or_default();
        ensure!(!matches!(&*term, "" | "dumb"), "TERM names none that can be drawn on");
        Ok(self)
    }

    /// Standard output if it is one, else standard error.
    ///
    /// # Errors
    /// As above.
    pub fn find() -> Result<Self> {
        let is_output = io::stdout().is_terminal();
        if is_output { Self::Output.checked() } else { Self::Error.checked() }
    }

    /// What suits it now.
    pub fn style(self) -> Style {
        match self {
            Self::Output => Style::for_stdout(),
            Self::Error => Style::for_stderr(),
        }
    }

    /// Another descriptor of the same terminal, which stays where the stream is led elsewhere.
    fn copy(self) -> io::Result<File> {
        let copy = |fd: BorrowedFd| fd.try_clone_to_owned().map(File::from);
        match self {
            Self::Output => copy(io::stdout().as_fd()),
            Self::Error => copy(io::stderr().as_fd()),
        }
    }
}

/// The terminal while it is ours.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<File>>>,
    style: Style,
}

impl Screen {
    /// Takes over the terminal of `stream`. It is given back when the value goes, and before a panic says why.
    ///
    /// # Errors
    /// When the terminal refuses.
    pub fn open(stream: Stream, style: Style) -> Result<Self> {
        const CANNOT: &str = "cannot take over the terminal";
        let (copy, at_panic) = (stream.copy().context(CANNOT)?, stream.copy().context(CANNOT)?);
        let say = panic::take_hook();
        panic::set_hook(Box::new(move |why| {
            give_back(&at_panic);
            say(why);
        }));
        let backend = CrosstermBackend::new(BufWriter::new(copy));
        // From here on it is given back whatever happens.
        let mut screen = Self { terminal: Terminal::new(backend).context(CANNOT)?, style };
        enable_raw_mode().context(CANNOT)?;
        execute!(screen.terminal.backend_mut(), EnterAlternateScreen).context(CANNOT)?;
        Ok(screen)
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
        give_back(self.terminal.backend_mut());
    }
}

/// Where that fails there is no terminal any more.
fn give_back(mut terminal: impl Write) {
    let _ = disable_raw_mode();
    let _ = execute!(terminal, LeaveAlternateScreen, Show);
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
