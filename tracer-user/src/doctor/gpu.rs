//! Which GPU libraries and drivers are here.

use std::path::Path;

use super::{Finding, State};
use crate::gpu::{Found, look};

/// One finding for each maker, and one for each value that a device does not tell.
pub fn checks() -> Vec<Finding> {
    let mut findings = nvidia(look(None, "/".into()));
    findings.push(amd(Path::new("/sys/class/kfd/kfd/topology/nodes")));
    findings
}

fn nvidia(found: Found) -> Vec<Finding> {
    let subject = "NVIDIA GPUs";
    let missing = |detail: String, cure| vec![Finding::new(subject, State::Missing, detail, cure)];
    match found {
        Found::Nothing => {
            vec![Finding::ok(subject, "none (no libnvidia-ml.so.1, driver or device)")]
        }
        Found::Silence => missing(
            "libnvidia-ml.so.1 does not answer: job_gpu is unknown".into(),
            "see whether nvidia-smi answers, and dmesg for NVRM",
        ),
        Found::Failure(error) => missing(
            error,
            "check that the driver is loaded and of the library's version: nvidia-smi, dmesg",
        ),
        Found::Gpus { driver, names, lacking } => {
            let detail = format!("{}, driver {driver}: {}", names.len(), names.join(", "));
            let mut findings = vec![Finding::ok(subject, detail)];
            findings.extend(lacking.into_iter().flat_map(|lacking| {
                missing(lacking, "nothing to do: all other values are complete")
            }));
            findings
        }
    }
}

/// The kernel's compute driver lists its nodes; those with SIMD units are GPUs.
fn amd(nodes: &Path) -> Finding {
    let properties = std::fs::read_dir(nodes).into_iter().flatten().flatten();
    let is_gpu = |text: &String| {
        text.lines().any(|line| line.starts_with("simd_count ") && !line.ends_with(" 0"))
    };
    let count = properties
        .filter_map(|node| std::fs::read_to_string(node.path().join("properties")).ok())
        .filter(is_gpu)
        .count();
    match count {
        0 => Finding::ok("AMD GPUs", "none"),
        count => Finding::ok("AMD GPUs", format!("{count}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_does_not_tell_is_missing_and_no_device_is_well() {
        let states = |found| nvidia(found).iter().map(|finding| finding.state).collect::<Vec<_>>();
        assert_eq!(states(Found::Nothing), [State::Ok]);
        assert_eq!(states(Found::Silence), [State::Missing]);
        assert_eq!(states(Found::Failure("no".into())), [State::Missing]);
        let (driver, names) = ("550.54".to_owned(), vec!["GPU 0 (H100)".to_owned()]);
        let found = Found::Gpus { driver, names, lacking: vec!["GPU 0 does not tell".into()] };
        assert_eq!(nvidia(found.clone())[0].detail, "1, driver 550.54: GPU 0 (H100)");
        assert_eq!(states(found), [State::Ok, State::Missing]);
    }

    #[test]
    fn amd_nodes_with_simd_units_are_gpus() {
        let nodes = tempfile::tempdir().unwrap();
        for (node, simd) in [("0", 0), ("1", 304)] {
            std::fs::create_dir(nodes.path().join(node)).unwrap();
            let text = format!("cpu_cores_count 1\nsimd_count {simd}\n");
            std::fs::write(nodes.path().join(node).join("properties"), text).unwrap();
        }
        assert_eq!(amd(nodes.path()).detail, "1");
        assert_eq!(amd(&nodes.path().join("absent")).detail, "none");
    }
}
