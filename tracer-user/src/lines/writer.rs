//! Who writes: what makes the names of files unique for ever.
//!
//! Pure: it makes parts of names and looks at no folder.

/// The node and the process that writes. Names of files begin `<host>-<boot>-`.
#[derive(Clone, Debug)]
pub struct Writer {
    /// Name of the node.
    pub host: String,
    /// `/proc/sys/kernel/random/boot_id`; its first eight hexadecimal digits are used.
    pub boot_id: String,
    /// Process id of the writer.
    pub pid: u32,
}

impl Writer {
    /// The host as a part of a file name, never empty nor longer than 64 bytes.
    pub fn file_host(&self) -> String {
        let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let name: String = self.host.chars().take(64).map(safe).collect();
        match name.strip_prefix('.') {
            Some(rest) => format!("_{rest}"),
            None if name.is_empty() => "unknown".to_owned(),
            None => name,
        }
    }

    /// The first eight hexadecimal digits of the boot id, in lower case.
    pub fn boot8(&self) -> String {
        let digits: String = self.boot_id.chars().filter(char::is_ascii_hexdigit).take(8).collect();
        format!("{digits:0<8}").to_lowercase()
    }

    /// [`Writer::boot8`] as a number.
    pub fn boot(&self) -> u32 {
        u32::from_str_radix(&self.boot8(), 16).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(host: &str, boot_id: &str) -> Writer {
        Writer { host: host.to_owned(), boot_id: boot_id.to_owned(), pid: 1 }
    }

    #[test]
    fn hosts_become_file_names() {
        for (host, expected) in [
            ("cn-042.cluster.example", "cn-042.cluster.example"),
            ("../../etc/passwd", "_._.._etc_passwd"),
            (".hidden", "_hidden"),
            ("a b\nc", "a_b_c"),
            ("knötchen", "kn_tchen"),
            ("", "unknown"),
        ] {
            assert_eq!(writer(host, "").file_host(), expected, "{host:?}");
        }
        assert_eq!(writer(&"h".repeat(300), "").file_host().len(), 64);
    }

    #[test]
    fn boot_ids_become_eight_digits() {
        for (id, expected) in [
            ("3FD2A9b1-77aa-4cde-9000-000000000000\n", "3fd2a9b1"),
            ("12", "12000000"),
            ("", "00000000"),
        ] {
            assert_eq!(writer("", id).boot8(), expected, "{id:?}");
        }
    }
}
