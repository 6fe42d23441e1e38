//! A file's lines in portions that the server takes in one request.
//!
//! Pure: it reads from what it is given. Splits at line ends only; refuses a text that does not end in
//! one, for half a line may still be a line, with another time.

use std::io::{self, BufRead, Read};

/// Longest line; ours stay below 60 KiB.
const LINE_BYTES: usize = 1 << 20;

/// Lines for one request. Comments and empty lines are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Whole lines.
    pub text: Vec<u8>,
    /// How many.
    pub lines: u64,
    /// Number in the file of the first one, from 1, comments counted.
    pub first: u64,
    /// Number in the file of the last one.
    pub last: u64,
}

/// The portions of one text.
#[derive(Debug)]
pub struct Batches<R> {
    reader: R,
    /// A line that did not fit into the last batch.
    carry: Vec<u8>,
    read: u64,
}

impl<R: BufRead> Batches<R> {
    /// Of what `reader` gives.
    pub fn new(reader: R) -> Self {
        Self { reader, carry: Vec::new(), read: 0 }
    }

    /// The next lines, at most `limit` bytes of them, but a line at least; `None` at the end.
    ///
    /// # Errors
    /// As the reader; `InvalidData` where the text is not lines.
    pub fn next(&mut self, limit: usize) -> io::Result<Option<Batch>> {
        let mut batch = Batch { text: Vec::new(), lines: 0, first: 0, last: 0 };
        loop {
            if self.carry.is_empty() && !self.read_line()? {
                break;
            }
            if batch.lines > 0 && batch.text.len() + self.carry.len() > limit {
                break;
            }
            if batch.lines == 0 {
                batch.first = self.read;
            }
            batch.last = self.read;
            batch.lines += 1;
            batch.text.append(&mut self.carry);
        }
        Ok((batch.lines > 0).then_some(batch))
    }

    /// Reads into `carry` up to the next line that is a point's; whether there was one.
    fn read_line(&mut self) -> io::Result<bool> {
        loop {
            self.carry.clear();
            let mut bounded = self.reader.by_ref().take(LINE_BYTES as u64);
            if bounded.read_until(b'\n', &mut self.carry)? == 0 {
                return Ok(false);
            }
            self.read += 1;
            if !self.carry.ends_with(b"\n") {
                let why = if self.carry.len() < LINE_BYTES {
                    "does not end in a line feed, so it is cut short"
                } else {
                    "is longer than 1 MiB, so this is not line protocol"
                };
                self.carry.clear();
                let message = format!("line {} {why}", self.read);
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            if is_point(&self.carry) {
                return Ok(true);
            }
        }
    }
}

/// Whether a line is neither a comment nor empty.
fn is_point(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    !text.is_empty() && !text.starts_with(b"#")
}

impl Batch {
    /// Two halves of nearly the same size; none where it is one line.
    pub fn halves(&self) -> Option<(Self, Self)> {
        if self.lines < 2 {
            return None;
        }
        let body = &self.text[..self.text.len() - 1];
        let (before, after) = body.split_at(body.len() / 2);
        // The line end nearest to the middle; with two lines there is one on at least one side.
        let left = before.iter().rposition(|&byte| byte == b'\n').map(|at| at + 1);
        let right = after.iter().position(|&byte| byte == b'\n').map(|at| before.len() + at + 1);
        let middle = before.len();
        let at = match (left, right) {
            (Some(left), Some(right)) if middle - left > right - middle => right,
            (Some(left), _) => left,
            (None, right) => right?,
        };
        let (first, second) = self.text.split_at(at);
        let lines = first.iter().filter(|&&byte| byte == b'\n').count() as u64;
        // Comments may lie between, so both keep the bounds of the whole.
        let part = |text: &[u8], lines| {
            let (first, last) = (self.first, self.last);
            Self { text: text.to_vec(), lines, first, last }
        };
        Some((part(first, lines), part(second, self.lines - lines)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, limit: usize) -> Vec<(String, u64, u64)> {
        let mut batches = Batches::new(text.as_bytes());
        std::iter::from_fn(|| batches.next(limit).unwrap())
            .map(|batch| (String::from_utf8(batch.text).unwrap(), batch.first, batch.last))
            .collect()
    }

    #[test]
    fn batches_end_with_lines_and_keep_to_the_limit() {
        let text = "# DML\n# CONTEXT-DATABASE: x\na 1\nbb 2\n\nc 3\n";
        let whole = |text: &str, first, last| (text.to_owned(), first, last);
        assert_eq!(split(text, 100), [whole("a 1\nbb 2\nc 3\n", 3, 6)]);
        assert_eq!(split(text, 9), [whole("a 1\nbb 2\n", 3, 4), whole("c 3\n", 6, 6)]);
        let alone = [whole("a 1\n", 3, 3), whole("bb 2\n", 4, 4), whole("c 3\n", 6, 6)];
        assert_eq!(split(text, 8), alone);
        assert_eq!(split(text, 0), alone, "a line goes alone where none fits");
        assert_eq!(split("# DML\n", 10), []);
        assert_eq!(split("", 10), []);
    }

    #[test]
    fn a_text_that_is_cut_is_refused_before_its_last_line_is_sent() {
        let mut batches = Batches::new(&b"a 1 17\nb 2 1"[..]);
        let error = batches.next(100).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().starts_with("line 2 does not end in a line feed"), "{error}");
        let long = vec![b'a'; LINE_BYTES + 10];
        let error = Batches::new(&long[..]).next(100).unwrap_err();
        assert!(error.to_string().starts_with("line 1 is longer than 1 MiB"), "{error}");
    }

    #[test]
    fn halves_are_whole_lines() {
        for (text, first, second) in [
            ("a\nb\n", "a\n", "b\n"),
            ("aaaaaaaaa\nb\n", "aaaaaaaaa\n", "b\n"),
            ("a\nbbbbbbbbb\n", "a\n", "bbbbbbbbb\n"),
            ("a\nb\nc\n", "a\n", "b\nc\n"),
            ("aa\nbbbbbb\ncc\ndd\n", "aa\nbbbbbb\n", "cc\ndd\n"),
        ] {
            let batch = Batches::new(text.as_bytes()).next(1000).unwrap().unwrap();
            let (left, right) = batch.halves().unwrap();
            assert_eq!(left.text, first.as_bytes(), "{text:?}");
            assert_eq!(right.text, second.as_bytes(), "{text:?}");
            assert_eq!(left.lines + right.lines, batch.lines);
        }
        let one = Batches::new(&b"a 1\n"[..]).next(1000).unwrap().unwrap();
        assert_eq!(one.halves(), None);
    }
}
