//! A cgroup's path, which any user of the node may have chosen: the answer is sound, and its names reach
//! a data base as they are.

use jobtrace::{
    base::text::clean,
    model::{
        job::Job,
        point::{FieldValue, Point},
    },
    resolve::Answer,
};

use super::resolver;
use crate::{
    lines::{self, expected_tag},
    split::text,
};

pub fn run(data: &[u8]) {
    let path = text(data);
    let answer = resolver().path(&path);
    sound(&answer, &path);
    assert_eq!(resolver().path(&path), answer, "twice the same");
    if let Some(root) = answer.root_of(&path) {
        assert!(path.starts_with(root));
        assert_eq!(resolver().path(&format!("{root}/below")).is_job(), answer.is_job(), "{path:?}");
    }
    if answer.is_job() {
        names_survive(&answer);
    }
}

/// What holds for every answer.
pub fn sound(answer: &Answer, path: &str) {
    for text in answer.texts() {
        // What stands for a bad byte is longer than it.
        assert!(text.len() <= Answer::LONGEST_BYTES * 3, "{path:?}: {answer:?}");
        assert!(!text.bytes().any(|byte| byte.is_ascii_control()), "{path:?}: {answer:?}");
    }
    let components = path.split('/').filter(|component| !component.is_empty()).count();
    assert!(answer.root <= components, "{path:?}: {answer:?}");
    assert_eq!(answer.is_job(), !answer.job.is_empty(), "{path:?}: {answer:?}");
    assert_eq!(answer.is_job(), answer.root > 0, "{path:?}: {answer:?}");
}

/// The tags of the job's lines are its names, and a terminal shows them harmless.
fn names_survive(answer: &Answer) {
    let job = Job {
        job: answer.job.clone(),
        manager: answer.manager.clone(),
        user: answer.user.clone().unwrap_or_default(),
        step: answer.step.clone().unwrap_or_default(),
        ..Job::default()
    };
    let tags = [
        ("host", "n1"),
        ("job", &job.job),
        ("manager", &job.manager),
        ("step", &job.step),
        ("user", &job.user),
    ];
    let point = Point {
        measurement: "job_sched".into(),
        tags: tags.map(|(key, value)| (key.into(), value.to_owned())).into(),
        fields: vec![("forks".into(), FieldValue::Integer(1))],
        time_ns: 1,
    };
    let written = lines::sound(&[point]);
    let parsed = lines::parsed(&written);
    for (key, value) in tags {
        assert_eq!(lines::tag(&parsed[0], key), expected_tag(value), "{key} of {answer:?}");
    }
    let shown = clean(&job.job, true);
    assert!(!shown.chars().any(char::is_control), "{shown:?}");
}
