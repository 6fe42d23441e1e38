//! What a server's answer means for the lines that were sent.
//!
//! Pure: status and words come in, a verdict goes out.

use std::time::Duration;

use crate::server::target::Api;

/// What came back from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Body, as far as it came and was worth reading.
    pub body: String,
    /// Header `Retry-After`, read.
    pub retry_after: Option<Duration>,
    /// Header `Location`.
    pub location: Option<String>,
}

/// What to do with the lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All of them are stored.
    Taken,
    /// Some or all of them are not, and never will be as they are.
    Refused,
    /// Too many for one request.
    TooLarge,
    /// The same lines may be taken later, not before the time that the server named.
    Later(Option<Duration>),
    /// No line will be taken before somebody has changed something: what.
    Stop(&'static str),
}

/// What `answer` means, of a server that speaks `api`.
pub fn judge(answer: &Answer, api: Api) -> Verdict {
    match answer.status {
        204 => Verdict::Taken,
        // 201 is what InfluxDB 3's clusters say where points were rejected.
        201 | 400 | 422 => Verdict::Refused,
        413 => Verdict::TooLarge,
        408 | 425 | 429 | 500..=599 => Verdict::Later(answer.retry_after),
        status => Verdict::Stop(cure(status, api)),
    }
}

/// What somebody has to change.
fn cure(status: u16, api: Api) -> &'static str {
    match (status, api) {
        (401, Api::V1) => {
            "give a user name: --user with --password-file or JOBTRACE_PUSH_PASSWORD, or --token-file"
        }
        (401, _) => "give a valid token: --token-file, or JOBTRACE_PUSH_TOKEN in the environment",
        (403, Api::V1) => "allow this user to write: GRANT WRITE ON \"DATABASE\" TO \"USER\"",
        (403, _) => "give a token that may write there",
        (404, Api::V1) => {
            "create the database: influx -execute 'CREATE DATABASE jobtrace', or name another with --database"
        }
        (404, Api::V2) => {
            "create the bucket: influx bucket create, or check --org, --bucket and --url"
        }
        (404, _) => "check --url, --api and --database: nothing accepts lines there",
        (300..=399, _) => "set --url to the address that the server names",
        (200..=299, _) => {
            "check --url and --api: a database answers 204, so this seems to be something else"
        }
        _ => "check --url and --api: this server does not accept lines there",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16) -> Answer {
        Answer { status, body: String::new(), retry_after: None, location: None }
    }

    #[test]
    fn every_status_has_one_meaning() {
        use Verdict::{Later, Refused, Stop, Taken, TooLarge};
        for status in 100..=599 {
            for api in [Api::V1, Api::V2, Api::V3, Api::Victoria] {
                let verdict = judge(&answer(status), api);
                let is_meant = match status {
                    204 => verdict == Taken,
                    201 | 400 | 422 => verdict == Refused,
                    413 => verdict == TooLarge,
                    408 | 425 | 429 | 500.. => verdict == Later(None),
                    _ => matches!(verdict, Stop(_)),
                };
                assert!(is_meant, "{status}: {verdict:?}");
            }
        }
    }

    #[test]
    fn the_cure_is_that_of_the_server() {
        for (status, api, word) in [
            (401, Api::V1, "--password-file"),
            (401, Api::V2, "--token-file"),
            (403, Api::V1, "GRANT WRITE"),
            (404, Api::V1, "CREATE DATABASE"),
            (404, Api::V2, "influx bucket create"),
            (404, Api::V3, "--api"),
            (302, Api::V1, "--url"),
            (200, Api::V1, "something else"),
            (405, Api::Victoria, "--api"),
        ] {
            let Verdict::Stop(cure) = judge(&answer(status), api) else { panic!("{status}") };
            assert!(cure.contains(word), "{status}: {cure}");
        }
    }

    #[test]
    fn the_servers_time_is_handed_on() {
        let wait = Some(Duration::from_secs(7));
        for status in [429, 503] {
            let answer = Answer { retry_after: wait, ..answer(status) };
            assert_eq!(judge(&answer, Api::V2), Verdict::Later(wait));
        }
    }
}
