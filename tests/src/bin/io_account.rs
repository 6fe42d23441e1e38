//! `io_account COMMAND…`: runs a program that is not ours to its end, and prints /proc/self/io from before and from
//! after it: in the second is what the program, which is reaped by then, has read and written.
//!
//! It does without Rust's start-up, which reads /proc/self/maps.
#![no_main]

use std::{
    io::{Write, stdout},
    process::{Command, Stdio},
};

#[unsafe(no_mangle)]
extern "C" fn main() -> libc::c_int {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let begin = answer();
    if let Some((program, arguments)) = words.split_first() {
        let mut command = Command::new(program);
        let status = command.args(arguments).stdout(Stdio::null()).status();
        assert!(status.is_ok_and(|status| status.success()), "{words:?} failed");
    }
    let both = [begin, answer()].concat();
    // Ends with a line feed: written at once.
    i32::from(stdout().write_all(&both).is_err())
}

/// What the kernel says, read at once.
fn answer() -> Vec<u8> {
    let mut text = vec![0; 512];
    // SAFETY: a literal with its zero, and so much room.
    let length = unsafe {
        let file = libc::open(c"/proc/self/io".as_ptr(), libc::O_RDONLY);
        let length = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        length
    };
    text.truncate(usize::try_from(length).expect("/proc/self/io can be read"));
    text
}
