//! While somebody watches: keys and answers go to the state, the state to the screen.

use std::{
    io,
    sync::mpsc::{Receiver, TryRecvError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use super::{
    Screen, is_given_up, is_gone,
    state::{Act, Answer, State},
};

/// A key is answered within this time, and the end.
const WAKE: Duration = Duration::from_millis(100);
/// Nobody can follow more answers than one in this time.
pub const SHORTEST: Duration = Duration::from_millis(500);

/// Why nobody watches any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The user wants no more, the caller does not, or nobody answers.
    Told,
    /// The terminal is gone, or took nothing when it was time to end.
    Gone,
}

/// Shows `state` until the user wants no more, `is_over` says so, nobody answers any more, or the terminal is gone; `act`
/// does what keys ask for.
///
/// # Errors
/// When the terminal cannot be read or drawn on, although it is there.
pub fn watch(
    screen: &mut Screen,
    state: &mut State,
    answers: &Receiver<Answer>,
    is_over: impl Fn() -> bool,
    act: impl Fn(Act),
) -> Result<Over> {
    loop {
        let is_last =
            screen.draw(state).and_then(|()| wait(screen, state, answers, &is_over, &act));
        match is_last {
            Ok(is_last) if is_last || state.is_over() => return Ok(Over::Told),
            Ok(_) => {}
            Err(error) if is_gone(&error) || is_given_up(&error) => return Ok(Over::Gone),
            Err(error) => return Err(error).context("cannot use the terminal"),
        }
    }
}

/// Waits until there is something to draw; gives whether it is over instead.
fn wait(
    screen: &mut Screen,
    state: &mut State,
    answers: &Receiver<Answer>,
    is_over: impl Fn() -> bool,
    act: impl Fn(Act),
) -> io::Result<bool> {
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
        let keys = screen.keys(WAKE)?;
        let is_pressed = !keys.is_empty();
        keys.into_iter().filter_map(|key| state.press(key)).for_each(&act);
        // The time on the screen goes on.
        if is_pressed || screen.is_resized()? || begin.elapsed() >= Duration::from_secs(1) {
            return Ok(false);
        }
    }
}
