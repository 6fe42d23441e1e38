//! /proc/self/mountinfo, and behind an empty line /proc/self/cgroup: every directory found lies below a
//! mount point that was named.

use std::path::{Component, Path};

use jobtrace::{
    cgroup::hierarchies::{Hierarchies, Hierarchy},
    fuzzing::places,
};

use crate::split::{paragraph, text};

pub fn run(data: &[u8]) {
    let (mountinfo, cgroups) = paragraph(data);
    let (mountinfo, cgroups) = (text(mountinfo), text(cgroups));
    let found = Hierarchies::parse(&mountinfo, &cgroups);
    for hierarchy in found.v2.iter().chain(&found.v1) {
        sound(hierarchy, &mountinfo);
    }
    assert!(found.v2.is_none_or(|v2| v2.number == 0));
    assert!(found.v1.is_sorted_by_key(|v1| v1.number));
    for v1 in &found.v1 {
        assert!(v1.number > 0 && !v1.controllers.is_empty(), "{v1:?}");
    }
    for place in places(&mountinfo, &cgroups, "/job_1/step_0").0 {
        assert!(place.directory.starts_with(&place.mount), "{place:?}");
        assert!(place.upwards().count() >= 1);
    }
}

fn sound(hierarchy: &Hierarchy, mountinfo: &str) {
    assert!(hierarchy.own.starts_with(&hierarchy.mount), "{hierarchy:?}");
    let below = hierarchy.own.strip_prefix(&hierarchy.mount).unwrap_or(Path::new(""));
    assert!(!below.components().any(|part| part == Component::ParentDir), "{hierarchy:?}");
    assert!(!mountinfo.is_empty(), "out of nothing: {hierarchy:?}");
}
