//! While somebody watches: keys and answers go to the state, the state to the screen.

use std::{
    sync::mpsc::{Receiver, TryRecvError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use super::{
    Screen,
    state::{Act, Answer, State},
};

/// A key is answered within this time, and the end.
const WAKE: Duration = Duration::from_millis(100);
/// Nobody can follow more answers than one in this time.
pub const SHORTEST: Duration = Duration::from_millis(500);

/// Shows `state` until the user wants no more, `is_over` says so, or nobody answers any more; `act` does what keys ask for.
///
/// # Errors
/// When the terminal cannot be read or drawn on.
pub fn watch(
    screen: &mut Screen,
    state: &mut State,
    answers: &Receiver<Answer>,
    is_over: impl Fn() -> bool,
    act: impl Fn(Act),
) -> Result<()> {
    loop {
        screen.draw(state)?;
        let is_last = wait(state, answers, &is_over, &act)?;
        if is_last || state.is_over() {
            return Ok(());
        }
    }
}

/// Waits until there is something to draw; gives whether it is over instead.
fn wait(
    state: &mut State,
    answers: &Receiver<Answer>,
    is_over: impl Fn() -> bool,
    act: impl Fn(Act),
) -> Result<bool> {
    const CANNOT: &str = "cannot read the terminal";
    let begin = Instant::now();
    loop {
        if is_over() {
            return Ok(true);
        }
        match answers.try_recv() {
            Ok(answer) => {
                state.take(answer);
                return Ok(false);
            }
            Err(TryRecvError::Disconnected) => return Ok(true),
            Err(TryRecvError::Empty) => {}
        }
        if event::poll(WAKE).context(CANNOT)? {
            match event::read().context(CANNOT)? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    state.press(key).into_iter().for_each(&act);
                    return Ok(false);
                }
                Event::Resize(..) => return Ok(false),
                _ => {}
            }
        }
        // The time on the screen goes on.
        if begin.elapsed() >= Duration::from_secs(1) {
            return Ok(false);
        }
    }
}
