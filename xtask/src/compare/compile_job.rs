//! The compile job: a C file of a known size, the same each time, and gcc on it.

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The C file: functions with loops, branches and calls, so that the optimiser has work to do.
pub fn source(functions: u32) -> String {
    let mut text = String::from("unsigned f0(unsigned a, unsigned *b) { return a + b[0]; }\n");
    for n in 1..functions {
        let (callee, modulus, factor) = (n - 1, n % 13 + 3, n % 7 + 2);
        let _ = write!(
            text,
            "unsigned f{n}(unsigned a, unsigned *b) {{
  unsigned s = a;
  for (unsigned i = 0; i < a % 97; i++) {{
    switch ((s ^ i) % {modulus}) {{
    case 0: s += b[i % 64] * {factor}; break;
    case 1: s ^= f{callee}(i, b); break;
    default: s = (s << {factor}) | (s >> (32 - {factor})); b[s % 64] = i;
    }}
  }}
  return s;
}}
"
        );
    }
    text
}

/// Runs a command and prints how many nanoseconds it took, so that what surrounds the workload does
/// not count.
#[derive(clap::Args)]
pub struct Timed {
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs it.
///
/// # Errors
/// When the command cannot be started or fails.
pub fn timed(args: &Timed) -> Result<()> {
    let [program, arguments @ ..] = args.command.as_slice() else { bail!("no command to time") };
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null());
    let begin = Instant::now();
    let status =
        command.status().with_context(|| format!("start {}", program.to_string_lossy()))?;
    let elapsed_ns = begin.elapsed().as_nanos();
    if !status.success() {
        bail!("{} failed: {status}", program.to_string_lossy());
    }
    println!("{elapsed_ns}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_is_the_same_each_time_and_has_each_function_once() {
        let text = source(50);
        assert_eq!(text, source(50));
        for n in 0..50 {
            assert_eq!(text.matches(&format!("unsigned f{n}(")).count(), 1, "f{n}");
        }
        assert!(!text.contains("f50("));
    }
}
