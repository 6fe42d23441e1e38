//! What a client of the agent's socket sends, and heads as a report finds them: refused, or the same when written again.

use jobtrace::record::{
    head::{Head, HeadIn, last_lines},
    name,
    running::Request,
};

pub fn run(data: &[u8]) {
    if let Ok(request) = Request::parse(data) {
        let again = serde_json::to_vec(&request).expect("JSON");
        assert_eq!(Request::parse(&again).expect("what was written is read"), request);
    }
    let (heads, damaged) = HeadIn::parse(data);
    assert!(heads.len() + damaged.len() <= data.split(|byte| *byte == b'\n').count());
    for head in heads {
        let file = head.file.as_deref().expect("those without are damaged");
        assert!(name::is_record(file) && !file.contains('/'), "{file:?}");
        let own = Head::from(&head);
        let line = own.line();
        let (again, damaged) = HeadIn::parse(line.as_bytes());
        assert!(damaged.is_empty());
        assert_eq!(again.first().map(Head::from), Some(own));
    }
    let last = last_lines(data);
    assert!(last.iter().all(|(file, line)| name::is_record(file) && line.ends_with(b"\n")));
}
