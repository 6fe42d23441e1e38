//! The reader of line protocol: what it accepts the official parser reads alike and our writer writes
//! again the same; and what the tables make of it has no more values than a node counts.

use influxdb_line_protocol::FieldValue as Parsed;
use jobtrace::{
    lines::{gather::Gathered, line::encode, read},
    model::{
        group::{Group, Value},
        hist::MAX_COUNT,
        point::{FieldValue, Name, Point},
    },
};

use crate::{lines, split::text};

/// Longer keys than this get no prefix, and longer texts are cut: what the writer writes it does not take.
const KEY: usize = 254;
const TEXT: usize = 8 << 10;

pub fn run(data: &[u8]) {
    let text = text(data);
    let mut gathered = Gathered::default();
    for point in read::points(&text).filter_map(Result::ok) {
        again(&point);
        gathered.add(&point);
    }
    for told in gathered.finish() {
        assert!(told.from_ns <= told.to_ns && !told.origin.host.is_empty());
        for (_, value) in told.stats.groups.iter().flat_map(Group::fields) {
            if let Some(Value::Histogram(hist)) = value {
                assert!(hist.count() <= 2 * MAX_COUNT);
                hist.quantiles();
            }
        }
    }
}

fn again(point: &Point) {
    let is_long = |(key, value): &(Name, FieldValue)| {
        key.len() > KEY || matches!(value, FieldValue::Text(text) if text.len() > TEXT)
    };
    let tags = point.tags.iter().map(|(key, _)| key.len());
    if point.fields.iter().any(is_long) || tags.chain([point.measurement.len()]).any(|n| n > KEY) {
        return;
    }
    let mut written = Vec::new();
    encode(point, &mut written);
    let written = String::from_utf8(written).expect("line protocol is UTF-8");
    let read: Result<Vec<_>, _> = read::points(&written).collect();
    assert_eq!(read.as_deref(), Ok(std::slice::from_ref(point)), "{written:?}");
    let parsed = lines::parsed(&written);
    let [line] = &parsed[..] else { panic!("one line: {written:?}") };
    assert_eq!(*line.series.measurement, *point.measurement);
    assert_eq!(line.field_set.len(), point.fields.len());
    for ((key, value), (own_key, own)) in line.field_set.iter().zip(&point.fields) {
        let is_same = match (value, own) {
            (Parsed::I64(number), FieldValue::Integer(own)) => *number as u64 == *own,
            (Parsed::F64(number), FieldValue::Float(own)) => number == own,
            (Parsed::String(text), FieldValue::Text(own)) => *text == own.as_str(),
            _ => false,
        };
        assert!(**key == **own_key && is_same, "{written:?}");
    }
    for (key, value) in &point.tags {
        assert_eq!(lines::tag(line, key), *value, "{written:?}");
    }
}
