//! Laws of the splitting: whatever the limits and the server's answers, a file that counts as taken was
//! taken line by line, each byte once.

use std::io::BufReader;

use jobtrace::{
    commands::push::{
        answer::Answer,
        batches::Batches,
        file::{End, send},
    },
    server::{http::Trouble, target::Api},
};
use proptest::prelude::*;

fn answer(status: u16) -> Answer {
    Answer { status, body: String::new(), retry_after: None, location: None }
}

/// Files with comments and empty lines between.
fn texts() -> impl Strategy<Value = Vec<String>> {
    let line = prop_oneof![
        8 => "[a-z]{1,40} n=[0-9]{1,9}i 1[0-9]{3}",
        1 => "# [a-z]{0,9}",
        1 => Just(String::new()),
    ];
    proptest::collection::vec(line, 0..60)
}

fn points(lines: &[String]) -> Vec<String> {
    lines.iter().filter(|line| !line.is_empty() && !line.starts_with('#')).cloned().collect()
}

proptest! {
    #[test]
    fn batches_hold_every_line_once(lines in texts(), limit in 0usize..400, buffer in 1usize..64) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let mut batches = Batches::new(BufReader::with_capacity(buffer, text.as_bytes()));
        let mut found = Vec::new();
        let mut last = 0;
        while let Some(batch) = batches.next(limit).unwrap() {
            let own = String::from_utf8(batch.text).unwrap();
            prop_assert!(own.ends_with('\n') && (own.len() <= limit || batch.lines == 1));
            prop_assert_eq!(own.lines().count() as u64, batch.lines);
            prop_assert!(last < batch.first && batch.first <= batch.last);
            prop_assert_eq!(Some(&*lines[batch.first as usize - 1]), own.lines().next());
            prop_assert_eq!(Some(&*lines[batch.last as usize - 1]), own.lines().last());
            last = batch.last;
            found.extend(own.lines().map(str::to_owned));
        }
        prop_assert_eq!(found, points(&lines));
    }

    #[test]
    fn halved_by_the_server_every_line_is_taken_once(
        lines in texts(), limit in 0usize..2000, room in 0usize..2000,
    ) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let (mut taken, mut own) = (Vec::new(), limit);
        let (end, sent) = send(text.as_bytes(), &mut own, Api::V1, |body| {
            let body = std::str::from_utf8(body).unwrap();
            if body.len() > room && body.lines().count() > 1 {
                return Ok(answer(413));
            }
            taken.extend(body.lines().map(str::to_owned));
            Ok(answer(204))
        }).unwrap();
        prop_assert_eq!(end, End::Taken);
        prop_assert_eq!(sent.lines as usize, taken.len());
        prop_assert_eq!(sent.bytes as usize, taken.iter().map(|line| line.len() + 1).sum::<usize>());
        prop_assert_eq!(taken, points(&lines), "in their order");
        prop_assert!(own <= limit.max(1));
    }

    #[test]
    fn a_file_is_taken_only_where_every_line_was(
        lines in texts(), limit in 1usize..400,
        statuses in proptest::collection::vec(
            prop_oneof![8 => Just(204u16), 1 => Just(400), 1 => Just(413), 1 => Just(503), 1 => Just(401), 1 => Just(0)],
            60,
        ),
    ) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let (mut taken, mut own, mut at, mut worst) = (Vec::new(), limit, 0, 204);
        let (end, sent) = send(text.as_bytes(), &mut own, Api::V1, |body| {
            let status = statuses[at % statuses.len()];
            // A server that finds everything too large would be halved down to single lines.
            let status = if status == 413 && at > 30 { 204 } else { status };
            at += 1;
            let body = std::str::from_utf8(body).unwrap();
            if status == 204 {
                taken.extend(body.lines().map(str::to_owned));
            }
            let is_final = status != 413 || body.lines().count() == 1;
            if status != 204 && is_final {
                worst = status;
            }
            match status {
                0 => Err(Trouble::Later("closed".into())),
                status => Ok(answer(status)),
            }
        }).unwrap();
        prop_assert_eq!(sent.requests, at as u64);
        let mut all = points(&lines);
        match end {
            End::Taken => prop_assert_eq!(taken, all),
            End::Refused(refusals) => {
                prop_assert!(!refusals.is_empty());
                prop_assert!(taken.len() < all.len());
                // What was taken is a part of the file, in its order.
                taken.reverse();
                all.retain(|line| if taken.last() == Some(line) { taken.pop().is_some() } else { false });
                prop_assert!(taken.is_empty());
            }
            End::Later(_, wait) => prop_assert!(matches!(worst, 0 | 503) && wait.is_none()),
            End::Stop(words) => prop_assert!(worst == 401 && words.contains("401")),
        }
    }
}
