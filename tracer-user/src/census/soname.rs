//! The family and the version of a library, from the name of its file.
//!
//! Pure.

use super::place::file_name;

/// What the name of a library's file tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Soname {
    /// Its family: `libopenblas`.
    pub family: String,
    /// Its version: `0.3.21`.
    pub version: Option<String>,
    /// Of what names no more than the interface (`libmpi.so.40`): its number.
    pub major: Option<u64>,
}

/// What the file of this path tells; `None` where it is no library, or a Python's extension module.
pub fn parse(path: &str) -> Option<Soname> {
    let name = file_name(path);
    let (stem, after) = split(name)?;
    if is_extension(stem, name) {
        return None;
    }
    let (stem, bundled) = unbundled(stem);
    let (family, in_name) = match bundled {
        Some(version) => (stem, Some(version)),
        None => versioned(stem, after.is_some()),
    };
    let version = in_name.or_else(|| after.map(str::to_owned));
    let major = version.as_deref().and_then(|version| version.split('.').next()?.parse().ok());
    Some(Soname { family: family.to_owned(), version, major })
}

/// `libx.so.1.2` as `libx` and `1.2`.
fn split(name: &str) -> Option<(&str, Option<&str>)> {
    let at = name.find(".so")?;
    let (stem, rest) = (&name[..at], &name[at + 3..]);
    let version = rest.strip_prefix('.');
    let is_version = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let is_whole = rest.is_empty() || version.is_some_and(is_version);
    (is_whole && !stem.is_empty()).then_some((stem, version))
}

/// Whether it is a module for Python: `_x.cpython-311-x86_64-linux-gnu.so`, `x.abi3.so`.
fn is_extension(stem: &str, name: &str) -> bool {
    [".cpython-", ".abi3", ".pypy"].iter().any(|mark| name.contains(mark))
        && !stem.starts_with("lib")
}

/// Without what a wheel's repair put there: `libx-0123abcd`, `libopenblasp-r0-0123abcd.3.23.dev`, the latter's version.
fn unbundled(stem: &str) -> (&str, Option<String>) {
    let is_hash = |text: &str| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some((before, last)) = stem.rsplit_once('-') else { return (stem, None) };
    if is_hash(last) {
        return (before, None);
    }
    let Some((hash, rest)) = last.split_once('.').filter(|(hash, _)| is_hash(hash)) else {
        return (stem, None);
    };
    debug_assert_eq!(hash.len(), 8);
    let rest = rest.trim_end_matches(".dev");
    match before.rsplit_once("-r") {
        Some((family, major)) if major.bytes().all(|byte| byte.is_ascii_digit()) => {
            (family, Some(format!("{major}.{rest}")))
        }
        _ => (before, Some(rest.to_owned())),
    }
}

/// `libgsl-2.7` of a file without another version as `libgsl` and `2.7`.
fn versioned(stem: &str, has_version: bool) -> (&str, Option<String>) {
    let Some((family, version)) = stem.rsplit_once('-').filter(|_| !has_version) else {
        return (stem, None);
    };
    // `libopenblasp-r0.3.21`.
    let version = version.strip_prefix('r').unwrap_or(version);
    let is_version = version.starts_with(|c: char| c.is_ascii_digit())
        && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match is_version && !family.is_empty() {
        true => (family, Some(version.to_owned())),
        false => (stem, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_and_versions() {
        for (name, family, version) in [
            ("libopenblas.so.0", "libopenblas", Some("0")),
            ("libopenblasp-r0.3.21.so", "libopenblasp", Some("0.3.21")),
            ("libopenblas64_p-r0-0cf96a72.3.23.dev.so", "libopenblas64_p", Some("0.3.23")),
            ("libscipy_openblas64_-ff651d7f.so", "libscipy_openblas64_", None),
            ("libgfortran-040039e1.so.5.0.0", "libgfortran", Some("5.0.0")),
            ("libcudart.so.12.4.127", "libcudart", Some("12.4.127")),
            ("libcudart-9335f6a2.so.11.0", "libcudart", Some("11.0")),
            ("libglib-2.0.so.0.7400.6", "libglib-2.0", Some("0.7400.6")),
            ("libc-2.31.so", "libc", Some("2.31")),
            ("libmkl_core.so.2", "libmkl_core", Some("2")),
            ("libstdc++.so.6.0.30", "libstdc++", Some("6.0.30")),
            ("libpython3.11.so.1.0", "libpython3.11", Some("1.0")),
            ("ld-linux-x86-64.so.2", "ld-linux-x86-64", Some("2")),
            ("mca_btl_vader.so", "mca_btl_vader", None),
        ] {
            let found = parse(&format!("/x/{name}")).unwrap();
            assert_eq!((&*found.family, found.version.as_deref()), (family, version), "{name}");
        }
        for name in [
            "_x.cpython-311-x86_64-linux-gnu.so",
            "x.abi3.so",
            "bash",
            ".so",
            "libx.so.conf",
            "libx.sorted",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
        assert_eq!(parse("libmpi.so.40.30.4").unwrap().major, Some(40));
    }
}
