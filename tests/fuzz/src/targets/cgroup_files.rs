//! A cgroup's files: first line a key or a file's name, then the text. A number is what the text says, or
//! unknown.

use jobtrace::{
    cgroup::formats::{
        parse_cfs, parse_cpu_count, parse_cpu_max, parse_hierarchical_limit, parse_limit,
        parse_number, parse_stall_ns, parse_stat,
    },
    fuzzing::is_default_setting,
};

use crate::split::{first_line, text};

pub fn run(data: &[u8]) {
    let (key, rest) = first_line(data);
    let (key, text) = (text(key), text(rest));
    let number = parse_number(&text);
    if let Some(number) = number {
        assert_eq!(parse_number(&number.to_string()), Some(number));
    }
    assert_eq!(parse_limit(&text), number.filter(|bytes| *bytes < 1 << 60));
    if let Some(limit) = parse_hierarchical_limit(&text) {
        assert_eq!(parse_stat(&text, "hierarchical_memory_limit"), Some(limit));
    }
    let value = parse_stat(&text, &key);
    if !key.contains('\n') && !key.contains('\r') {
        // Only that key's line counts, and the first of them.
        let more = format!("{key} 7\n{text}");
        assert_eq!(parse_stat(&more, &key), Some(7), "{key:?}");
        let more = format!("{text}\nx{key} 7\n");
        assert_eq!(parse_stat(&more, &key), value, "{key:?}");
    }
    for kind in ["some", "full"] {
        assert!(parse_stall_ns(&text, kind).is_none_or(|ns| ns % 1000 == 0));
    }
    for millicores in [parse_cpu_max(&text), parse_cfs(&key, &text)].into_iter().flatten() {
        assert!(millicores > 0);
    }
    if let Some(count) = parse_cpu_count(&text) {
        assert!(count > 0, "{text:?}");
        assert_eq!(parse_cpu_count(&format!("{},0", text.trim())), count.checked_add(1));
    }
    let _ = is_default_setting(&key, text.trim());
}
