//! Which GPU libraries and drivers are here.

use std::path::Path;

use nvml_wrapper::{Nvml, error::NvmlError};

use super::{Finding, State};

/// One finding for each maker.
pub fn checks() -> [Finding; 2] {
    [nvidia(), amd(Path::new("/sys/class/kfd/kfd/topology/nodes"))]
}

fn nvidia() -> Finding {
    let subject = "NVIDIA GPUs";
    let found =
        Nvml::init().and_then(|nvml| Ok((nvml.device_count()?, nvml.sys_driver_version()?)));
    match found {
        Ok((count, driver)) => Finding::ok(subject, format!("{count}, driver {driver}")),
        Err(NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound) => {
            Finding::ok(subject, "none (no libnvidia-ml.so.1)")
        }
        Err(error) => Finding::new(
            subject,
            State::Missing,
            format!("libnvidia-ml.so.1 answers: {error}"),
            "check that the driver is loaded: nvidia-smi",
        ),
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
