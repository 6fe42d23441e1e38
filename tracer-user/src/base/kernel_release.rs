//! The numbers in a kernel's release.

/// Major and minor number of `5.10.0-32-cloud-amd64`; 0 for what is none.
#[must_use]
pub fn version_of(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert_eq!(version_of("5.10.0-32-cloud-amd64"), (5, 10));
        assert_eq!(version_of("7.2.13+deb14-cloud-amd64"), (7, 2));
        assert!(version_of("6.12.107+deb13") > version_of("6.1.0-50"));
    }
}
