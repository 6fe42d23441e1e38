//! Several values out of one input, so that a corpus file can be read and written by hand.

/// What is before the first line feed, and what is after it.
pub fn first_line(data: &[u8]) -> (&[u8], &[u8]) {
    at(data, b"\n")
}

/// What is before the first empty line, and what is after it.
pub fn paragraph(data: &[u8]) -> (&[u8], &[u8]) {
    at(data, b"\n\n")
}

fn at<'a>(data: &'a [u8], mark: &[u8]) -> (&'a [u8], &'a [u8]) {
    match data.windows(mark.len()).position(|window| window == mark) {
        Some(begin) => (&data[..begin], &data[begin + mark.len()..]),
        None => (data, &[]),
    }
}

/// Pieces between bytes 0xff, which no text in UTF-8 has.
pub fn pieces(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    data.split(|byte| *byte == 0xff)
}

/// As text; what is no UTF-8 is replaced.
pub fn text(data: &[u8]) -> String {
    String::from_utf8_lossy(data).into_owned()
}
