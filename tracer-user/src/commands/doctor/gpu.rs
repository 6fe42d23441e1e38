//! Which GPU libraries, drivers and files are here.

use std::path::Path;

use super::{Finding, Severity};
use crate::{
    base::units::counted,
    gpu::{FoundCard, FoundGpus, NoAnswer, look, look_at_cards},
};

/// One finding for each maker, and one for each value that a device does not tell; sys and proc are below
/// `root`.
pub fn checks(root: &Path) -> Vec<Finding> {
    let mut findings = nvidia(look(None, root.to_owned()));
    findings.extend(match look_at_cards(root) {
        Ok(found) => cards(&found),
        Err(why) => vec![no_cards(&why)],
    });
    findings
}

fn missing(subject: &str, detail: impl Into<String>, cure: &str) -> Finding {
    Finding::new(subject, Severity::Missing, detail, cure)
}

fn nvidia(found: FoundGpus) -> Vec<Finding> {
    let subject = "NVIDIA GPUs";
    let (driver, names, lacking, lost, refused) = match found {
        FoundGpus::Nothing => {
            return vec![Finding::ok(subject, "none (no libnvidia-ml.so.1, driver or device)")];
        }
        FoundGpus::Silence => {
            let detail = "libnvidia-ml.so.1 does not answer, so job_gpu is unknown";
            let cure = "check whether nvidia-smi answers, and look for NVRM in dmesg";
            return vec![missing(subject, detail, cure)];
        }
        FoundGpus::Failure(error) => {
            let cure = "check that you may open /dev/nvidiactl, that the driver is loaded, and that the library is of its \
                        version: nvidia-smi, dmesg";
            return vec![missing(subject, error, cure)];
        }
        FoundGpus::Gpus { driver, names, lacking, lost, refused } => {
            (driver, names, lacking, lost, refused)
        }
    };
    let mut findings = Vec::new();
    if !names.is_empty() {
        let detail = format!("{}, driver {driver}: {}", names.len(), names.join(", "));
        findings.push(Finding::ok(subject, detail));
    }
    let cure =
        "look for NVRM and Xid in dmesg: what fell off the bus comes back with a reset or a reboot";
    findings.extend(lost.into_iter().map(|text| missing(subject, text, cure)));
    if refused > 0 {
        let detail =
            format!("{} that you may not open, driver {driver}", counted(refused.into(), "GPU"));
        let cure = "nothing to do if others are to have them; else make /dev/nvidia0 and so on readable and writable for \
                    you, or for the agent's user";
        findings.push(missing(subject, detail, cure));
    }
    let cure = "nothing to do: all other values of this device are complete";
    findings.extend(lacking.into_iter().map(|text| missing(subject, text, cure)));
    findings
}

/// The kernel's files do not answer.
fn no_cards(why: &NoAnswer) -> Finding {
    let detail = match why {
        NoAnswer::Silence => {
            "the kernel's files about them do not answer, so job_gpu is unknown".to_owned()
        }
        NoAnswer::Failure(why) => format!("nothing can be asked ({why}), so job_gpu is unknown"),
    };
    missing("AMD, Intel and other GPUs", detail, "look in dmesg for a card that is being reset")
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
        findings.extend(cards.iter().filter(|card| card.is_asleep).map(|card| {
            Finding::ok(subject, format!("{} sleeps, and is not read until it wakes", card.name))
        }));
        let cure = "check that the driver is the kernel's own and no older than the kernel";
        let lacking = cards.iter().flat_map(|card| &card.lacking);
        findings.extend(lacking.map(|lacking| missing(subject, lacking.as_str(), cure)));
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
        let found = |names: &[&str], lacking: &[&str], lost: &[&str], refused| {
            let [names, lacking, lost] = [names, lacking, lost]
                .map(|texts| texts.iter().map(|text| (*text).into()).collect());
            FoundGpus::Gpus { driver: "550.54".into(), names, lacking, lost, refused }
        };
        let one = found(&["GPU 0 (H100)"], &["GPU 0 does not report"], &[], 0);
        assert_eq!(nvidia(one.clone())[0].detail, "1, driver 550.54: GPU 0 (H100)");
        assert_eq!(states(one), [Severity::Ok, Severity::Missing]);
        let lost = nvidia(found(&[], &[], &["GPU 0 (H100) was lost"], 0));
        assert_eq!((lost.len(), lost[0].detail.as_str()), (1, "GPU 0 (H100) was lost"));
        assert!(lost[0].cure.contains("dmesg"), "{lost:?}");
        let refused = nvidia(found(&["GPU 0 (H100)"], &[], &[], 2));
        assert_eq!(refused[1].detail, "2 GPUs that you may not open, driver 550.54");
        assert!(refused[1].cure.contains("/dev/nvidia0"), "{refused:?}");
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
            is_asleep: name == "c",
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
                pair("other GPUs", "c sleeps, and is not read until it wakes"),
            ]
        );
    }
}
