//! Words on standard error. Whether anybody reads them is no reason for a run to fail, as it is for
//! `eprintln!`, which panics on a closed pipe.

use std::{
    fmt::Display,
    io::{self, Write},
};

/// Says `message`, after the program's name.
pub fn say(message: impl Display) {
    let _ = writeln!(io::stderr(), "jobtrace: {message}");
}
