//! The software that a job was seen to run, as it is named so far, and its line.

use super::Details;
use crate::model::{
    job::Job,
    point::{Origin, Point},
    software::Software,
    software_point::{UserTag, point},
};

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct Ran {
    /// What an agent before this one had named, or what was closed since.
    earlier: Option<Box<Software>>,
    /// Whether a line has told what is known now.
    is_told: bool,
    /// Whether one has beside the end: who looks for jobs that ended finds both at one time.
    end_told: bool,
}

impl Ran {
    /// Of a job that an agent before this one knew.
    pub fn resumed(earlier: Option<Software>) -> Self {
        Self { earlier: earlier.map(Box::new), ..Self::default() }
    }
}

impl Details {
    /// What it ran is `named` so far, all of it that this agent saw; `None` where nobody watched.
    pub fn set_software(&mut self, named: Option<Software>) {
        let mut software = named;
        Software::merge_known(&mut software, self.ran.earlier.as_deref());
        if software == self.record.totals.software {
            return;
        }
        self.record.totals.software = software;
        self.ran.is_told = false;
        // Its record, and its totals, are told again.
        self.late |= self.end_told;
    }

    /// What is named now stays: who saw it has forgotten it, and what comes is told beside it.
    pub fn close_software(&mut self) {
        self.ran.earlier = self.record.totals.software.clone().map(Box::new);
    }

    /// The line of what it ran, where that is not told yet, and at its end: beside `info`, its `job_info`, with the same stamp.
    pub fn due_software(
        &mut self,
        origin: &Origin,
        job: &Job,
        user: &UserTag,
        info: &Point,
    ) -> Option<Point> {
        let software = self.record.totals.software.as_ref()?;
        if self.ran.is_told && self.ran.end_told >= self.end_told {
            return None;
        }
        (self.ran.is_told, self.ran.end_told) = (true, self.end_told);
        Some(point(origin, job, software, user, info.time_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::software::Program, resolve::Resolver};

    const SECOND: u64 = 1_000_000_000;

    fn software(executions: u64) -> Option<Software> {
        let program = Program { name: "bash".into(), executions, ..Program::default() };
        Some(Software { programs: vec![program], ..Software::default() })
    }

    fn begun() -> Details {
        let answer = Resolver::new(&[]).unwrap().path("/slurm/uid_1000/job_7");
        Details::new(&answer, SECOND, 0)
    }

    fn lines(details: &mut Details, stamp_ns: u64, has_settled: bool) -> (bool, bool) {
        let (origin, job) = (Origin::default(), Job::default());
        let info = details.due_info(&origin, &job, stamp_ns, has_settled);
        let line =
            info.as_ref().and_then(|info| details.due_software(&origin, &job, &UserTag::On, info));
        let stamps = info.iter().zip(&line).all(|(info, line)| info.time_ns == line.time_ns);
        assert!(stamps, "the same moment");
        (info.is_some(), line.is_some())
    }

    #[test]
    fn it_is_told_beside_the_facts_and_again_only_when_there_is_more() {
        let mut details = begun();
        assert_eq!(lines(&mut details, SECOND, false), (true, false), "nobody watched");
        details.set_software(software(1));
        assert_eq!(lines(&mut details, 2 * SECOND, false), (false, false), "not yet");
        assert_eq!(lines(&mut details, 400 * SECOND, false), (true, true));
        details.set_software(software(1));
        assert_eq!(lines(&mut details, 800 * SECOND, false), (true, false), "the same");
        details.set_software(software(2));
        assert_eq!(lines(&mut details, 1200 * SECOND, false), (true, true));
        details.set_ended(1210 * SECOND);
        assert_eq!(lines(&mut details, 1610 * SECOND, false), (true, true), "beside its end");
        // What is named after the end is told once more.
        details.set_software(software(3));
        assert_eq!(lines(&mut details, 1620 * SECOND, true), (true, true));
        assert_eq!(lines(&mut details, 1630 * SECOND, true), (false, false));
    }

    #[test]
    fn what_is_closed_stays() {
        let mut details = begun();
        details.set_software(software(5));
        details.close_software();
        details.set_software(software(2));
        let record = details.record(&Origin::default(), &Job::default());
        assert_eq!(record.totals.software, software(7));
    }

    #[test]
    fn what_an_agent_before_named_stays() {
        let mut details = begun();
        details.set_software(software(5));
        let state = serde_json::to_string(&details.counted()).unwrap();
        let counted = serde_json::from_str(&state).unwrap();
        let mut next = Details::resumed(details.info.clone(), None, None, counted);
        let ran = |details: &Details| {
            let record = details.record(&Origin::default(), &Job::default());
            record.totals.software.unwrap().programs[0].executions
        };
        assert_eq!(ran(&next), 5);
        next.set_software(None);
        assert_eq!(ran(&next), 5);
        next.set_software(software(2));
        assert_eq!(ran(&next), 7, "what this agent saw comes on top");
        next.set_software(software(3));
        assert_eq!(ran(&next), 8);
    }
}
