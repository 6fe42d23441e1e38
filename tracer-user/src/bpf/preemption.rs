//! Whether other tasks may interrupt programs.

/// Whether one of a typed tracepoint is run with preemption: since Linux 7.0. Nothing in the kernel's types says so.
pub fn interrupts_programs() -> bool {
    major(&rustix::system::uname().release().to_string_lossy()).is_some_and(|major| major >= 7)
}

fn major(release: &str) -> Option<u32> {
    release.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_begins_with_its_major_number() {
        assert_eq!(major("6.18.44-fc-v595"), Some(6));
        assert_eq!(major("7.2.13+deb14-cloud-amd64"), Some(7));
        assert_eq!(major("none"), None);
    }
}
