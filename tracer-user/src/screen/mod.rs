//! The terminal: taken over, drawn on, and given back as it was, however the program ends but by SIGKILL.

pub mod keys;
pub mod state;
mod tty;
mod watch;

use std::{
    io::{self, BufWriter, IsTerminal, Write},
    os::fd::AsFd,
    panic,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use ratatui::{
    Frame, Terminal, TerminalOptions, Viewport,
    backend::CrosstermBackend,
    crossterm::{
        cursor::Show,
        execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen},
    },
    layout::Rect,
    style::{Color, Modifier, Style as Look},
    text::{Line as Drawn, Span},
};
use rustix::termios::Termios;

use crate::{
    base::text::clean,
    view::{
        Style,
        line::{Line, Tone},
    },
};
use keys::{Keys, Press};
use state::{State, Window};
pub use tty::{GiveUp, Tty, is_given_up, is_gone};
pub use watch::{Over, SHORTEST, watch};

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

    /// Itself as a file of its own, which stays where the stream is led elsewhere.
    fn open(self, give_up: GiveUp) -> io::Result<Tty> {
        match self {
            Self::Output => Tty::open(io::stdout().as_fd(), give_up),
            Self::Error => Tty::open(io::stderr().as_fd(), give_up),
        }
    }
}

/// The terminal while it is ours.
pub struct Screen {
    tty: Tty,
    /// Its settings, until they are given back.
    before: Option<Termios>,
    terminal: Terminal<CrosstermBackend<BufWriter<Tty>>>,
    keys: Keys,
    style: Style,
}

impl Screen {
    /// Takes over the terminal of `stream`. It is given back when the value goes, and before a panic says why.
    ///
    /// # Errors
    /// When the terminal refuses.
    pub fn open(stream: Stream, style: Style, give_up: GiveUp) -> Result<Self> {
        const CANNOT: &str = "cannot take over the terminal";
        let tty = stream.open(give_up).context(CANNOT)?;
        let area = area(&tty).context(CANNOT)?;
        let before = tty.make_raw().context(CANNOT)?;
        let (say, at_panic, settings) = (panic::take_hook(), tty.clone(), before.clone());
        panic::set_hook(Box::new(move |why| {
            let _ = give_back(at_panic.clone(), &at_panic, &settings);
            say(why);
        }));
        let backend = CrosstermBackend::new(BufWriter::new(tty.clone()));
        // Its size is asked of the very terminal: crossterm asks others, and starts a program where none answers.
        let options = TerminalOptions { viewport: Viewport::Fixed(area) };
        // Asks nothing, so does not fail.
        let terminal = Terminal::with_options(backend, options).context(CANNOT)?;
        // From here on it is given back whatever happens.
        let mut screen = Self { tty, before: Some(before), terminal, keys: Keys::default(), style };
        execute!(screen.terminal.backend_mut(), EnterAlternateScreen).context(CANNOT)?;
        Ok(screen)
    }

    /// The terminal, for who writes on it when it is given back.
    pub fn tty(&self) -> &Tty {
        &self.tty
    }

    /// Draws what there is to see, as large as the terminal is now.
    ///
    /// # Errors
    /// When the terminal is gone, or writing was given up.
    pub fn draw(&mut self, state: &mut State) -> io::Result<()> {
        if self.is_resized()? {
            self.terminal.resize(area(&self.tty)?)?;
        }
        let style = self.style;
        let drawn = self.terminal.draw(|frame| {
            let area = frame.area();
            let window = state.window(area.width.into(), area.height.into());
            draw(frame, &window, &style);
        });
        drawn.map(drop)
    }

    /// Whether it is not as large as what was drawn.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn is_resized(&mut self) -> io::Result<bool> {
        Ok(area(&self.tty)? != self.terminal.get_frame().area())
    }

    /// The keys pressed, as soon as there are some; none when `patience` is over.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn keys(&mut self, patience: Duration) -> io::Result<Vec<Press>> {
        Ok(self.keys.take(&self.tty.read(patience)?))
    }

    /// Gives it back.
    ///
    /// # Errors
    /// When the terminal is gone, or writing was given up.
    pub fn close(mut self) -> io::Result<()> {
        self.give_back()
    }

    fn give_back(&mut self) -> io::Result<()> {
        let before = self.before.take();
        before.map_or(Ok(()), |before| give_back(self.terminal.backend_mut(), &self.tty, &before))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Where that fails there is no terminal any more.
        let _ = self.give_back();
    }
}

fn area(tty: &Tty) -> io::Result<Rect> {
    let (columns, rows) = tty.size()?;
    Ok(Rect::new(0, 0, columns, rows))
}

fn give_back(mut terminal: impl Write, tty: &Tty, before: &Termios) -> io::Result<()> {
    // The settings in any case, and first: they wait for nobody.
    let set = tty.set(before);
    execute!(terminal, LeaveAlternateScreen, Show).and(set)
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
