//! The writer of line protocol, fed with names of any kind: pieces are the measurement, then keys and
//! values in turn; a value with `=` before it is a text, with `.` a number, all others are tags.

use jobtrace::model::point::{FieldValue, Name, Point};

use crate::{
    lines,
    split::{pieces, text},
};

pub fn run(data: &[u8]) {
    let mut pieces = pieces(data);
    let measurement = text(pieces.next().unwrap_or_default()).into();
    let mut point = Point { measurement, tags: Vec::new(), fields: Vec::new(), time_ns: 0 };
    while let (Some(key), Some(value)) = (pieces.next(), pieces.next()) {
        let key = Name::from(text(key));
        match value {
            [b'=', words @ ..] => point.fields.push((key, FieldValue::Text(text(words)))),
            [b'.', bits @ ..] => {
                let mut number = [0; 8];
                bits.iter().zip(&mut number).for_each(|(bit, byte)| *byte = *bit);
                let number = u64::from_le_bytes(number);
                point.time_ns ^= number;
                point.fields.push((key.clone(), FieldValue::Integer(number)));
                point.fields.push((key + "f", FieldValue::Float(f64::from_bits(number))));
            }
            tag => point.tags.push((key, text(tag))),
        }
    }
    let written = lines::sound(std::slice::from_ref(&point));
    assert!(written.lines().count() <= point.fields.len(), "a line has a field");
}
