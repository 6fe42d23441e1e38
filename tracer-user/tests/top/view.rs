//! What a terminal shows of a command that a shell runs on it, and the shell's words about its end.

use std::{
    fs,
    io::Read,
    num::NonZero,
    process::Command,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use crate::terminal::Terminal;

/// For a machine that does much else.
pub const PATIENCE: Duration = Duration::from_secs(60);

fn non_zero(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("a terminal has rows and columns")
}

/// `command` in the environment of a terminal that can be drawn on.
pub fn of_terminal(command: &mut Command) -> &mut Command {
    for name in ["NO_COLOR", "COLUMNS", "LINES", "LC_ALL", "LC_CTYPE"] {
        command.env_remove(name);
    }
    command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8")
}

pub struct View {
    terminal: Terminal,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl View {
    /// Runs `script` in a shell; when it has ended, the shell says its status and the terminal's settings.
    pub fn start(script: &str, rows: u16, columns: u16) -> Self {
        let script = format!("{script}; echo \"status=$?\"; stty -a; echo over");
        let mut command = Command::new("sh");
        let command = of_terminal(command.args(["-c", &script]));
        let terminal = Terminal::start_sized(command, rows, columns);
        let screen =
            Arc::new(Mutex::new(vt100::Parser::new(non_zero(rows), non_zero(columns), 1000)));
        let (shown, mut reader) = (Arc::clone(&screen), terminal.reader());
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                shown.lock().unwrap().process(&bytes[..count]);
            }
        });
        Self { terminal, screen }
    }

    /// `jobtrace top` with `arguments`.
    pub fn top(arguments: &str, rows: u16, columns: u16) -> Self {
        let program = env!("CARGO_BIN_EXE_jobtrace");
        Self::start(&format!("RUST_BACKTRACE=0 {program} top {arguments}"), rows, columns)
    }

    pub fn type_in(&mut self, keys: &str) {
        self.terminal.type_in(keys.as_bytes());
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        // What comes from now on is for the new size.
        let mut screen = self.screen.lock().unwrap();
        screen.screen_mut().set_size(non_zero(rows), non_zero(columns));
        self.terminal.resize(rows, columns);
    }

    /// The lines on the screen.
    pub fn lines(&self) -> Vec<String> {
        let screen = self.screen.lock().unwrap();
        let (_, columns) = screen.screen().size();
        screen.screen().rows(0, columns.get()).map(|row| row.trim_end().to_owned()).collect()
    }

    /// Waits until the screen is as `wanted`; gives its lines.
    pub fn wait_for(&self, what: &str, wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
        let begin = Instant::now();
        loop {
            let lines = self.lines();
            if wanted(&lines) {
                return lines;
            }
            assert!(begin.elapsed() < PATIENCE, "never {what}:\n{}", lines.join("\n"));
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until some line has `words`.
    pub fn wait_for_words(&self, words: &str) -> Vec<String> {
        self.wait_for(words, |lines| lines.iter().any(|line| line.contains(words)))
    }

    /// Sends `signal` to the process that the shell runs.
    pub fn signal(&self, signal: i32) {
        // SAFETY: a process of ours that has not ended.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
    }

    /// The process that the shell runs.
    fn pid(&self) -> i32 {
        let shell = self.terminal.child.id();
        let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        children.split(' ').next().unwrap().parse().unwrap()
    }

    /// Waits for the end, which must leave the terminal as it was, with the cursor; gives what the shell sees.
    pub fn end(mut self) -> String {
        let lines = self.wait_for("over", |lines| lines.iter().any(|line| line == "over"));
        let screen = self.screen.lock().unwrap();
        assert!(!screen.screen().alternate_screen() && !screen.screen().hide_cursor());
        drop(screen);
        let text = lines.join(" ");
        for setting in [" icanon ", " isig ", " echo ", " icrnl ", " opost "] {
            assert!(format!("{text} ").contains(setting), "not{setting}: {text}");
        }
        assert!(self.terminal.child.wait().unwrap().success());
        text
    }
}
