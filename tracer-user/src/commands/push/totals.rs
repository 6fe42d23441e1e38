//! What became of the files, in numbers and words.

use std::time::Duration;

use bytesize::ByteSize;

use super::file::Sent;
use crate::base::units::counted;

/// Since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentTotals {
    /// Files that the server took whole.
    pub files: u64,
    /// Lines that it took, those of refused files included.
    pub lines: u64,
    /// Their text.
    pub bytes: u64,
    /// Requests.
    pub requests: u64,
    /// Files moved to `failed`.
    pub refused: u64,
    /// Files that somebody else took or dropped first.
    pub gone: u64,
    /// Files that are still there, though they should be sent.
    pub stayed: u64,
}

impl SentTotals {
    /// Adds what was sent of a file.
    pub fn add(&mut self, sent: Sent) {
        self.lines += sent.lines;
        self.bytes += sent.bytes;
        self.requests += sent.requests;
    }

    /// For `systemctl status`.
    pub fn status(&self) -> String {
        let Self { files, refused, .. } = self;
        format!("{} sent, {} refused", counted(*files, "file"), refused)
    }

    /// For the end.
    pub fn summary(&self, elapsed: Duration) -> String {
        let size = ByteSize(self.bytes);
        let mut words = format!(
            "{} sent: {}, {size}, {}, in {:.1} s",
            counted(self.files, "file"),
            counted(self.lines, "line"),
            counted(self.requests, "request"),
            elapsed.as_secs_f64()
        );
        for (number, what) in [
            (self.refused, "refused, moved to failed"),
            (self.gone, "gone before they were sent"),
            (self.stayed, "not sent, still there"),
        ] {
            if number > 0 {
                words += &format!("; {} {what}", counted(number, "file"));
            }
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_tells_what_there_is_to_tell() {
        let mut totals = SentTotals { files: 1, ..SentTotals::default() };
        totals.add(Sent { lines: 20, bytes: 2048, requests: 1 });
        let elapsed = Duration::from_millis(1250);
        let expected = "1 file sent: 20 lines, 2.0 KiB, 1 request, in 1.2 s";
        assert_eq!(totals.summary(elapsed), expected);
        totals.refused = 2;
        totals.stayed = 1;
        let more = "; 2 files refused, moved to failed; 1 file not sent, still there";
        assert_eq!(totals.summary(elapsed), format!("{expected}{more}"));
        assert_eq!(totals.status(), "1 file sent, 2 refused");
    }
}
