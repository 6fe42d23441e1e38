//! The line of `job_software`: one series for each job and node, with names in fields. As tags they would be a series
//! each.

use sha2::{Digest, Sha256};

use super::{
    job::Job,
    point::{FieldValue, Name, Origin, Point},
    software::Software,
    tables::JOB_SOFTWARE,
};

/// What the line tells of the job's owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UserTag {
    /// Their name, as all lines.
    #[default]
    On,
    /// Nothing.
    Off,
    /// A number made of the name and this secret: the same for the same user, and nobody without the secret can tell
    /// whose it is by trying names.
    Hashed(String),
}

impl UserTag {
    /// The tag's text for `user`; empty for none.
    pub fn of(&self, user: &str) -> String {
        match self {
            Self::On => user.to_owned(),
            Self::Off => String::new(),
            Self::Hashed(_) if user.is_empty() => String::new(),
            Self::Hashed(secret) => {
                // Of a fixed length, so that no secret and name are another secret and name.
                let secret = Sha256::digest(secret.as_bytes());
                let hash = Sha256::new().chain_update(secret).chain_update(user).finalize();
                hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
            }
        }
    }
}

/// The line of `job`, whose `software` is known so far.
pub fn point(
    origin: &Origin,
    job: &Job,
    software: &Software,
    user: &UserTag,
    time_ns: u64,
) -> Point {
    let job = Job { user: user.of(&job.user), ..job.clone() };
    let tags = origin.job_tags(&job);
    Point { measurement: JOB_SOFTWARE.into(), tags, fields: fields(software), time_ns }
}

fn fields(software: &Software) -> Vec<(Name, FieldValue)> {
    let mut fields: Vec<(Name, FieldValue)> = Vec::new();
    let mut text = |name: &'static str, text: String| {
        if !text.is_empty() {
            fields.push((name.into(), FieldValue::Text(text)));
        }
    };
    text("level", software.level.name().to_owned());
    let by: Vec<_> = software.by.iter().map(|means| means.name()).collect();
    text("by", by.join(", "));
    text("programs", software.programs_text());
    text("libraries", software.libraries_text());
    text("packages", software.packages_text());
    text("stacks", software.stacks_text());
    text("python", software.python_text());
    let mut number = |name: &'static str, number: u64| {
        fields.push((name.into(), FieldValue::Integer(number)));
    };
    number("opted_out", software.opted_out.into());
    if software.opted_out {
        return fields;
    }
    number("partial", software.is_partial().into());
    number("gpu_library", software.gpu_library.into());
    number("own_modules", software.own_modules);
    number("lost", software.lost);
    if let Some(most) = software.python_processes_most {
        number("python_processes_most", most);
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_told_hashed_or_not() {
        let secret = |secret: &str| UserTag::Hashed(secret.to_owned());
        assert_eq!(UserTag::On.of("ada"), "ada");
        assert_eq!(UserTag::Off.of("ada"), "");
        let hashed = secret("x").of("ada");
        assert_eq!(hashed.len(), 16);
        assert_eq!(hashed, secret("x").of("ada"));
        assert!(![secret("y").of("ada"), secret("x").of("adb"), "ada".into()].contains(&hashed));
        assert_ne!(secret("xa").of("da"), secret("x").of("ada"));
        assert_eq!(secret("x").of(""), "");
    }

    #[test]
    fn who_opted_out_is_told_as_that_alone() {
        let fields = fields(&Software::opted_out(Default::default()));
        let names: Vec<_> = fields.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["level", "opted_out"]);
    }
}
