//! Whose a path is: a site's, so that its name may be told, or a user's own. Whatever is not known to be a site's is a
//! user's own.
//!
//! Pure: looks at the path alone.

/// Folders whose contents the site or its distribution installed.
const PUBLIC: [&str; 27] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/app",
    "/apps",
    "/sw",
    "/soft",
    "/software",
    "/modules",
    "/pkg",
    "/packages",
    "/cvmfs",
    "/nix/store",
    "/gnu/store",
    "/snap",
    "/spack",
    "/easybuild",
    "/eb",
    "/cm",
    "/ohpc",
    "/hpc",
    "/global/software",
    "/shared/software",
];
/// Those of a container's image that are surely a distribution's: the rest may be what its user put there.
const PUBLIC_IN_IMAGE: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];
/// Where an image's maker builds, below `/usr`.
const OWN_IN_IMAGE: [&str; 2] = ["/usr/local", "/usr/src"];
/// Names of folders that hold users' homes, wherever they are.
const HOMES: [&str; 8] = ["home", "homes", "users", "Users", "root", "u", "user", "people"];
/// Where such a folder lies at most: `/lustre/fs1/home/…`.
const HOMES_DEPTH: usize = 4;

/// Ends of the paths below which a container's own begin: the layer of an overlay, or a mounted image.
const IMAGES: [(&str, &str, usize); 6] = [
    // Marker, what must come after it, components between them.
    ("/overlay2/", "diff", 1),
    ("/overlay2/", "merged", 1),
    ("/overlay/", "diff", 1),
    ("/overlay/", "merged", 1),
    ("/snapshots/", "fs", 1),
    ("/mnt/session/", "", 1),
];

/// A path, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The path as the job saw it, as far as that can be told: without a container's layer.
    pub path: &'a str,
    /// Whether it is below a container's image.
    pub in_image: bool,
    /// Whether its name may be told.
    pub is_public: bool,
}

impl<'a> Place<'a> {
    /// Of `path`, where a site also has `public` folders.
    pub fn of(path: &'a str, public: &[String]) -> Self {
        let inner = inner(path);
        let in_image = inner.is_some();
        let path = inner.unwrap_or(path);
        let is_below_any = |folders: &[&str]| folders.iter().any(|folder| is_below(path, folder));
        let is_sites = public.iter().any(|folder| is_below(path, folder.trim_end_matches('/')));
        let is_public = match in_image {
            true => is_below_any(&PUBLIC_IN_IMAGE) && !is_below_any(&OWN_IN_IMAGE),
            false => is_below_any(&PUBLIC) && !has_home(path),
        };
        Self { path, in_image, is_public: is_sites && !in_image || is_public }
    }
}

/// Whether `path` is in `folder`, at any depth.
fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a folder of `path` holds homes.
fn has_home(path: &str) -> bool {
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    folders.split('/').skip(1).take(HOMES_DEPTH).any(|folder| HOMES.contains(&folder))
}

/// What `path` is inside a container, if it is one's.
fn inner(path: &str) -> Option<&str> {
    IMAGES.iter().find_map(|(marker, after, between)| {
        let (_, mut rest) = path.split_once(marker)?;
        for _ in 0..*between {
            rest = rest.split_once('/')?.1;
        }
        if !after.is_empty() {
            rest = rest.strip_prefix(after)?;
            return rest.starts_with('/').then_some(rest);
        }
        // The slash before it is the image's root.
        path.get(path.len() - rest.len() - 1..)
    })
}

/// The name of the file.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Folders in which Python finds modules, and the name in it that `path` is below, if it is: the innermost.
pub fn site_of(path: &str) -> Option<(&str, &str)> {
    let mut found = None;
    let mut at = 0;
    for part in path.split('/') {
        let end = at + part.len();
        if matches!(part, "site-packages" | "dist-packages") {
            let name = path.get(end + 1..)?.split('/').next()?;
            found = (!name.is_empty()).then_some((&path[..end], name)).or(found);
        }
        at = end + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_not_known_to_be_a_sites_is_a_users_own() {
        for (path, is_public) in [
            ("/usr/bin/bash", true),
            ("/usr/local/cuda-12.4/bin/nvcc", true),
            ("/opt/conda/bin/python3.11", true),
            ("/apps/gromacs/2024.1/bin/gmx", true),
            ("/cvmfs/software.eessi.io/versions/2023.06/software/linux/x86_64/x", true),
            ("/nix/store/x/bin/y", true),
            ("/home/ada/bin/solver", false),
            ("/root/solver", false),
            ("/scratch/ada/solver", false),
            ("/tmp/a.out", false),
            ("/lustre/fs1/home/ada/a.out", false),
            ("/sw/users/ada/bin/solver", false),
            ("/opt/home/ada/x", false),
            ("/usrlocal/x", false),
            ("solver", false),
            ("", false),
        ] {
            assert_eq!(Place::of(path, &[]).is_public, is_public, "{path}");
        }
        let public = ["/proj/tools/".to_owned()];
        assert!(Place::of("/proj/tools/bin/x", &public).is_public);
        assert!(!Place::of("/proj/toolsets/bin/x", &public).is_public);
    }

    #[test]
    fn the_document_for_data_protection_names_each_folder() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/PRIVACY.md");
        let text = std::fs::read_to_string(path).unwrap();
        for folder in PUBLIC.iter().chain(&OWN_IN_IMAGE).chain(&HOMES) {
            let is_lib = folder.starts_with("/lib");
            let name = if is_lib { "/lib*" } else { folder };
            assert!(text.contains(&format!("`{name}`")), "docs/PRIVACY.md does not name {folder}");
        }
    }

    #[test]
    fn what_is_in_an_image_is_seen_from_inside() {
        let layer = "/var/lib/containers/storage/overlay/0f3a/diff";
        for (path, inside, is_public) in [
            (format!("{layer}/usr/bin/python3.11"), "/usr/bin/python3.11", true),
            (format!("{layer}/opt/mycode/solve"), "/opt/mycode/solve", false),
            (format!("{layer}/usr/local/bin/solve"), "/usr/local/bin/solve", false),
            ("/var/lib/docker/overlay2/ab/merged/usr/bin/env".into(), "/usr/bin/env", true),
            (
                "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/12/fs/bin/sh"
                    .into(),
                "/bin/sh",
                true,
            ),
            ("/var/lib/apptainer/mnt/session/final/usr/bin/R".into(), "/usr/bin/R", true),
        ] {
            let place = Place::of(&path, &[]);
            let expected = Place { path: inside, in_image: true, is_public };
            assert_eq!(place, expected, "{path}");
        }
    }

    #[test]
    fn the_innermost_site_counts() {
        let venv = "/home/ada/v/lib/python3.11/site-packages";
        let path = format!("{venv}/numpy/core/x.so");
        assert_eq!(site_of(&path), Some((venv, "numpy")));
        let vendored = format!("{venv}/pip/site-packages/six.py");
        let inner = format!("{venv}/pip/site-packages");
        assert_eq!(site_of(&vendored), Some((&*inner, "six.py")));
        assert_eq!(site_of(venv), None);
        assert_eq!(site_of("/usr/lib/python3.11/os.py"), None);
    }
}
