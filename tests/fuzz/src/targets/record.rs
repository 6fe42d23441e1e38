//! A record, which a report reads wherever it is told to: refused with words, or sound in all that is made of it.

use jobtrace::{
    record::{document::document, file, merge, parse},
    view::{Style, render},
};

pub fn run(data: &[u8]) {
    drop(file::decode(data));
    let Ok(record) = parse(data) else { return };
    let text = document(&record).expect("a document");
    let again = parse(text.as_bytes()).expect("what was written is read");
    let mut other = again.clone();
    other.hosts = vec!["another".into()];
    let both = merge(vec![record, again, other]).expect("some are one");
    assert!(both.timeline.columns().count() <= 240);
    let screen = render(&both.totals, &Style { width: 80, color: false, unicode: true });
    assert!(screen.chars().all(|c| c == '\n' || !c.is_control()), "{screen}");
}
