//! Which GPU libraries, drivers and files are here.

use std::path::Path;

use super::{Finding, Severity};
use crate::gpu::{FoundCard, FoundGpus, look, look_at_cards};

/// One finding for each maker, and one for each value that a device does not tell; sys and proc are below
/// `root`.
pub fn checks(root: &Path) -> Vec<Finding> {
    let mut findings = nvidia(look(None, root.to_owned()));
    findings.extend(cards(&look_at_cards(root)));
    findings
}

fn nvidia(found: FoundGpus) -> Vec<Finding> {
    let subject = "NVIDIA GPUs";
    let missing =
        |detail: String, cure| vec![Finding::new(subject, Severity::Missing, detail, cure)];
    match found {
        FoundGpus::Nothing => {
            vec![Finding::ok(subject, "none (no libnvidia-ml.so.1, driver or device)")]
        }
        FoundGpus::Silence => missing(
            "libnvidia-ml.so.1 does not answer, so job_gpu is unknown".into(),
            "check whether nvidia-smi answers, and look for NVRM in dmesg",
        ),
        FoundGpus::Failure(error) => missing(
            error,
            "check that the driver is loaded and has the library's version: nvidia-smi, dmesg",
        ),
        FoundGpus::Gpus { driver, names, lacking } => {
            let detail = format!("{}, driver {driver}: {}", names.len(), names.join(", "));
            let mut findings = vec![Finding::ok(subject, detail)];
            findings.extend(lacking.into_iter().flat_map(|lacking| {
                missing(lacking, "nothing to do: all other values are complete")
            }));
            findings
        }
    }
}

/// AMD's and Intel's, also where there are none; others where there are some.
fn cards(found: &[FoundCard]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (subject, vendor) in
        [("AMD GPUs", Some("amd")), ("Intel GPUs", Some("intel")), ("other GPUs", None)]
    {
        let is_of = |card: &&FoundCard| match vendor {
            Some(vendor) => card.vendor == vendor,
            None => !["amd", "intel"].contains(&card.vendor.as_str()),
        };
        let cards: Vec<_> = found.iter().filter(is_of).collect();
        let names: Vec<_> = cards.iter().map(|card| card.name.as_str()).collect();
        match (names.len(), vendor) {
            (0, None) => {}
            (0, Some(_)) => {
                findings.push(Finding::ok(subject, "none (no card with a render node)"))
            }
            (count, _) => {
                findings.push(Finding::ok(subject, format!("{count}: {}", names.join(", "))));
            }
        }
        findings.extend(cards.iter().flat_map(|card| &card.lacking).map(|lacking| {
            let cure = "check that the driver is the kernel's own and no older than the kernel";
            Finding::new(subject, Severity::Missing, lacking.as_str(), cure)
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_does_not_tell_is_missing_and_no_device_is_well() {
        let states = |found| nvidia(found).iter().map(|finding| finding.state).collect::<Vec<_>>();
        assert_eq!(states(FoundGpus::Nothing), [Severity::Ok]);
        assert_eq!(states(FoundGpus::Silence), [Severity::Missing]);
        assert_eq!(states(FoundGpus::Failure("no".into())), [Severity::Missing]);
        let (driver, names) = ("550.54".to_owned(), vec!["GPU 0 (H100)".to_owned()]);
        let found =
            FoundGpus::Gpus { driver, names, lacking: vec!["GPU 0 does not report".into()] };
        assert_eq!(nvidia(found.clone())[0].detail, "1, driver 550.54: GPU 0 (H100)");
        assert_eq!(states(found), [Severity::Ok, Severity::Missing]);
    }

    #[test]
    fn cards_are_told_by_maker() {
        let subjects = |found: &[FoundCard]| -> Vec<_> {
            cards(found).into_iter().map(|finding| (finding.subject, finding.detail)).collect()
        };
        let none = "none (no card with a render node)";
        let pair = |subject: &str, detail: &str| (subject.to_owned(), detail.to_owned());
        assert_eq!(subjects(&[]), [pair("AMD GPUs", none), pair("Intel GPUs", none)]);
        let card = |vendor: &str, name: &str, lacking: &[&str]| FoundCard {
            vendor: vendor.into(),
            name: name.into(),
            lacking: lacking.iter().map(|text| (*text).to_owned()).collect(),
        };
        let found =
            [card("amd", "a", &["a lacks"]), card("amd", "b", &[]), card("nouveau", "c", &[])];
        assert_eq!(
            subjects(&found),
            [
                pair("AMD GPUs", "2: a, b"),
                pair("AMD GPUs", "a lacks"),
                pair("Intel GPUs", none),
                pair("other GPUs", "1: c"),
            ]
        );
    }
}
