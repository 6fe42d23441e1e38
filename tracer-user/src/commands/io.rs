//! `jobtrace io`: the file operations of a job that runs, counted for a while by the agent.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Error, Result};

use crate::{
    base::{
        ending,
        progress::Line,
        say::print,
        units::{count, long_duration},
        values::Time,
    },
    record::{
        document::document,
        running::{self, LONGEST_IO, SHORTEST_IO, SOCKET, STATE_DIR, SoFar},
    },
    view::{Style, of_dive},
};

/// Count each file operation of a running job for a while, by mount, kind of call and file.
///
/// Asks the agent of this node, which counts for root and for the job's owner, one job at a time: it loads what
/// counts, and removes it when the time is over, the job ends or this command does. Meanwhile each system call of
/// the node takes about 0.15 µs longer, the job's own operations about 0.5 µs. What the job did before is not known.
/// Ctrl-C ends it early and shows what was counted. The exit status is 0, 128 + N after signal N, or 2 if nothing was
/// counted.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  What job 4711 does with files now, for a minute:
      jobtrace io 4711
  For ten minutes, as JSON, which `jobtrace report` reads too:
      jobtrace io 4711 --for 10m --json > 4711.json
      jobtrace report 4711.json
  Which files it opened most often:
      jobtrace io 4711 --json | jq -r '.io_files // [] | sort_by(-.opens)[:10][] | \"\\(.opens) \\(.path)\"'
  A command from its begin, without an agent:
      jobtrace run --io -- ./simulate")]
pub struct Args {
    /// Its id, as `jobtrace top` shows it
    #[arg(value_name = "JOB", value_parser = parse_job)]
    pub job: String,
    /// For how long at most, from 1s to 1h: seconds, or a number with a unit (s, m, h)
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = parse_time)]
    pub most: Duration,
    /// Print JSON: the record of that time, as `jobtrace run --json` writes it
    #[arg(long)]
    pub json: bool,
    /// Where the agent listens: query.sock in its `state.dir`
    #[arg(long, value_name = "PATH", default_value_os_t = Path::new(STATE_DIR).join(SOCKET))]
    pub socket: PathBuf,
}

/// An empty id is that of a variable which is not set.
fn parse_job(text: &str) -> Result<String, String> {
    let is_empty = text.trim().is_empty();
    (!is_empty).then(|| text.to_owned()).ok_or_else(|| {
        "the id of a job is empty: `jobtrace top --once` lists those that run".into()
    })
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let Time(time) = text.parse()?;
    match time {
        _ if time < SHORTEST_IO => Err("shorter than a second (1s)".into()),
        _ if time > LONGEST_IO => Err("longer than an hour (1h)".into()),
        _ => Ok(time),
    }
}

/// Has them counted and prints what came of it; gives the exit status.
///
/// # Errors
/// When the agent does not answer, or refuses; the message names the cure.
pub fn run(args: &Args) -> Result<u8> {
    ending::catch()?;
    let mut line = Line::on_terminal();
    let goes_on = |news: Option<SoFar>| {
        if let Some(so_far) = news {
            line.show(&progress(so_far, args.most));
        }
        ending::signal().is_none()
    };
    let found = running::io(&args.socket, &args.job, args.most, goes_on);
    drop(line);
    let record = found.map_err(with_cure)?;
    if args.json {
        print(&document(&record)?)?;
    } else {
        print(&of_dive(&record, &Style::for_stdout()))?;
    }
    Ok(ending::signal().map_or(0, |signal| 128 + signal))
}

/// `counting: 12.0 s of 1 min 0 s, 4.20k operations; Ctrl-C ends it`.
fn progress(so_far: SoFar, most: Duration) -> String {
    let [now, most] = [so_far.elapsed_ns, most.as_nanos() as u64].map(long_duration);
    format!("counting: {now} of {most}, {} operations; Ctrl-C ends it", count(so_far.ops))
}

/// Where the agent could not be reached, what to do.
fn with_cure(error: Error) -> Error {
    if !error.root_cause().is::<io::Error>() {
        return error;
    }
    error.context(
        "nothing was counted: is the agent running (`systemctl status jobtrace`)? `jobtrace run --io` needs none",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, seconds) in [("1", 1), ("90s", 90), ("10m", 600), ("1h", 3600)] {
            assert_eq!(parse_time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "0", "999ms", "-1", "61m", "2h", "1e9", "x"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn how_far_it_is_is_said_in_words() {
        let so_far = SoFar { elapsed_ns: 12_000_000_000, ops: 4_200 };
        let text = progress(so_far, Duration::from_secs(60));
        assert_eq!(text, "counting: 12.0 s of 1 min 0 s, 4.20k operations; Ctrl-C ends it");
    }

    #[test]
    fn a_refusal_has_its_own_words() {
        let refused = with_cure(anyhow::anyhow!("the agent refuses: no"));
        assert_eq!(format!("{refused:#}"), "the agent refuses: no");
        let gone = with_cure(Error::new(io::Error::from_raw_os_error(2)).context("cannot ask"));
        assert!(format!("{gone:#}").starts_with("nothing was counted: is the agent running"));
    }
}
