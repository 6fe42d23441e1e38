//! Which GPUs a job was given, as its scheduler or the site writes them: numbers, ranges, UUIDs. Pure.
//! Refuses to tell a GPU's index from its minor number by itself: who wrote the numbers says which they are.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::reading::Device;
use crate::model::{job::Job, lease::Lease};

/// More numbers than any node has GPUs: a range beyond is somebody's joke.
const MOST: u64 = 1024;
/// Shortest beginning of a UUID that names one, `GPU-` and four digits.
const LEAST_UUID: usize = 8;

/// Who has devices and uses them.
pub trait Holder: Ord + Clone {
    /// Whose devices it uses: of a step its job, which has them while none of its steps is on them.
    fn job(&self) -> Self {
        self.clone()
    }
}

impl Holder for Lease {}

impl Holder for Job {
    fn job(&self) -> Self {
        Self { step: String::new(), ..self.clone() }
    }
}

/// One GPU, as somebody names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// Its UUID, or the beginning of it; of a MIG instance too.
    Uuid(String),
    /// The number of its device file.
    Minor(u32),
    /// The driver's number for it.
    Index(u32),
}

/// The GPUs that a job was given.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Claims {
    /// Which.
    pub of: BTreeSet<Claim>,
    /// Whether the numbers may count within what the job alone sees: they are believed only as long as
    /// nothing speaks against them.
    pub is_relative: bool,
}

impl Claims {
    /// Those in `text`, separated by commas or spaces, whose numbers become claims by `number`. What is no
    /// name of a GPU is left out: `all`, `NoDevFiles`, `node1:gpu0`.
    pub fn parse(text: &str, number: fn(u32) -> Claim) -> BTreeSet<Claim> {
        let mut claims = BTreeSet::new();
        for part in text.split([',', ' ']).map(str::trim).filter(|part| !part.is_empty()) {
            let is_uuid = part.starts_with("GPU-") || part.starts_with("MIG-");
            if is_uuid && part.len() >= LEAST_UUID {
                claims.insert(Claim::Uuid(part.to_owned()));
                continue;
            }
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
                continue;
            };
            if first <= last && u64::from(last - first) < MOST {
                claims.extend((first..=last).map(number));
            }
        }
        claims
    }

    /// Whether `device` is among them. Where a device's minor number is not told its index stands in: they
    /// differ on few nodes. A number means a whole device of the makers that `are_numbered` (the scheduler
    /// hands out one maker's): of a MIG instance only the UUID speaks.
    pub fn have(&self, device: &Device, are_numbered: impl Fn(&str) -> bool) -> bool {
        let is_whole = device.instance.is_none() && are_numbered(&device.vendor);
        self.of.iter().any(|claim| match claim {
            Claim::Uuid(uuid) => device.uuid.starts_with(uuid.as_str()),
            Claim::Minor(minor) => is_whole && device.minor.unwrap_or(device.index) == *minor,
            Claim::Index(index) => is_whole && device.index == *index,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_gpus_as_schedulers_write_them() {
        let uuid = |text: &str| Claim::Uuid(text.into());
        let minor = Claim::Minor;
        for (text, expected) in [
            ("0,2", vec![minor(0), minor(2)]),
            ("0-2,5", vec![minor(0), minor(1), minor(2), minor(5)]),
            (" 3 ", vec![minor(3)]),
            (
                "GPU-8932f937-d72c,GPU-8932f938",
                vec![uuid("GPU-8932f937-d72c"), uuid("GPU-8932f938")],
            ),
            ("MIG-1f0c-2", vec![uuid("MIG-1f0c-2")]),
            ("", vec![]),
            ("all", vec![]),
            ("NoDevFiles", vec![]),
            ("-1", vec![]),
            ("5-3", vec![]),
            ("0-4294967295", vec![]),
            ("GPU-", vec![]),
            ("node1:gpu0", vec![]),
        ] {
            let got = Claims::parse(text, Claim::Minor);
            assert_eq!(got, expected.into_iter().collect(), "{text}");
        }
    }

    #[test]
    fn an_index_is_no_minor_number() {
        let device = Device {
            index: 0,
            minor: Some(3),
            uuid: "GPU-8932f937-d7".into(),
            ..Device::default()
        };
        let have =
            |claim| Claims { of: [claim].into(), is_relative: false }.have(&device, |_| true);
        assert!(have(Claim::Index(0)) && have(Claim::Minor(3)));
        assert!(!have(Claim::Minor(0)) && !have(Claim::Index(3)));
        assert!(have(Claim::Uuid("GPU-8932".into())) && !have(Claim::Uuid("GPU-9932".into())));
        let unknown = Device { minor: None, ..device.clone() };
        assert!(
            Claims { of: [Claim::Minor(0)].into(), is_relative: false }.have(&unknown, |_| true)
        );
        let other = Claims { of: [Claim::Index(0)].into(), is_relative: false };
        assert!(!other.have(&device, |vendor| vendor == "nvidia"), "the chip of the console");
        let part = Device { instance: Some(0), uuid: "MIG-1f0c".into(), ..unknown };
        let have = |claim| Claims { of: [claim].into(), is_relative: false }.have(&part, |_| true);
        assert!(!have(Claim::Minor(0)) && !have(Claim::Index(0)));
        assert!(have(Claim::Uuid("MIG-1f0c".into())));
    }
}
