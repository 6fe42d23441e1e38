//! What drivers write, and what they do not.

use super::*;

const INTEL: &str = "pos:\t0\nflags:\t02100002\nmnt_id:\t24\ndrm-driver:\ti915\ndrm-client-id:\t7\n\
    drm-pdev:\t0000:4d:00.0\ndrm-total-system0:\t120 KiB\ndrm-resident-system0:\t0\n\
    drm-total-local0:\t2 MiB\ndrm-resident-local0:\t1 MiB\ndrm-shared-local0:\t0\n\
    drm-engine-render:\t1000000 ns\ndrm-engine-copy:\t900000000 ns\ndrm-engine-video:\t500 ns\n\
    drm-engine-capacity-video:\t2\ndrm-engine-compute:\t0 ns\n";

fn client(text: &str) -> DrmClient {
    DrmClient::parse(text).expect("a client")
}

fn share(old: &str, new: &str, elapsed_ns: u64, engine: &str) -> Option<u64> {
    let (old, new) = (format!("drm-driver: x\n{old}"), format!("drm-driver: x\n{new}"));
    client(&new).shares(&client(&old), elapsed_ns).get(engine).copied()
}

#[test]
fn a_client_of_i915() {
    let client = client(INTEL);
    assert_eq!((client.driver.as_str(), client.id), ("i915", Some(7)));
    assert_eq!(client.address.as_deref(), Some("0000:4d:00.0"));
    assert_eq!(client.memory_bytes(), Some(1 << 20), "what is resident in its own memory");
    assert!(client.has_worked() && client.is_used());
    let names: Vec<_> = client.shares(&client, 1).into_keys().collect();
    assert_eq!(names, ["compute", "render", "video"], "copying is left out");
}

#[test]
fn shares_of_the_time() {
    for (old, new, elapsed, expected) in [
        ("drm-engine-r: 100 ns", "drm-engine-r: 600 ns", 1_000, Some(500_000)),
        ("drm-engine-r: 100 ns", "drm-engine-r: 100 ns", 1_000, Some(0)),
        ("drm-engine-r: 100 ns", "drm-engine-r: 99 ns", 1_000, Some(0)),
        ("drm-engine-r: 0 ns", "drm-engine-r: 5000 ns", 1_000, Some(1_000_000)),
        ("drm-engine-r: 0 ns", "drm-engine-r: 18446744073709551615 ns", 1, Some(1_000_000)),
        ("drm-engine-r: 0 ns", "drm-engine-r: 1 ns", 0, None),
        ("", "drm-engine-r: 1 ns", 1_000, None),
        ("drm-engine-r: 0 ns", "drm-engine-r: 1", 1_000, None),
        ("drm-engine-r: 0 ns", "drm-engine-r: ns", 1_000, None),
        (
            "drm-engine-r: 0 ns",
            "drm-engine-r: 1000 ns\ndrm-engine-capacity-r: 4",
            1_000,
            Some(250_000),
        ),
        (
            "drm-engine-r: 0 ns",
            "drm-engine-r: 500 ns\ndrm-engine-capacity-r: 0",
            1_000,
            Some(500_000),
        ),
        (
            "drm-cycles-r: 10\ndrm-total-cycles-r: 100",
            "drm-cycles-r: 60\ndrm-total-cycles-r: 300",
            7,
            Some(250_000),
        ),
        (
            "drm-cycles-r: 10\ndrm-total-cycles-r: 100",
            "drm-cycles-r: 60\ndrm-total-cycles-r: 100",
            7,
            None,
        ),
        ("drm-cycles-r: 10", "drm-cycles-r: 60", 7, None),
    ] {
        assert_eq!(share(old, new, elapsed, "r"), expected, "{old:?} {new:?}");
    }
}

#[test]
fn memory_of_the_device() {
    for (text, expected) in [
        ("drm-memory-vram: 10 KiB\ndrm-memory-gtt: 5 MiB", Some(10 << 10)),
        (
            "drm-total-vram0: 9 MiB\ndrm-resident-vram0: 7 MiB\ndrm-total-vram1: 1",
            Some((7 << 20) + 1),
        ),
        ("drm-total-system: 9 MiB", None),
        ("drm-memory-vram: 10 GiB", None),
        ("drm-memory-vram: x KiB", None),
        ("drm-memory-vram: 18446744073709551615 MiB", None),
        ("drm-memory-vram0: 18446744073709551615\ndrm-memory-vram1: 5", Some(u64::MAX)),
    ] {
        assert_eq!(client(&format!("drm-driver: x\n{text}")).memory_bytes(), expected, "{text}");
    }
}

#[test]
fn an_open_file_alone_is_no_use() {
    for (text, is_used) in [
        ("", true),
        ("drm-engine-gfx: 0 ns", false),
        ("drm-engine-gfx: 0 ns\ndrm-memory-vram: 0 KiB", false),
        ("drm-engine-gfx: 1 ns", true),
        ("drm-cycles-rcs: 1", true),
        ("drm-engine-gfx: 0 ns\ndrm-memory-gtt: 1 KiB", true),
    ] {
        assert_eq!(client(&format!("drm-driver: x\n{text}")).is_used(), is_used, "{text}");
    }
}

#[test]
fn what_is_no_client_or_no_number() {
    for text in ["", "pos:\t0\nflags:\t02\n", "drm-pdev: 0000:00:02.0\n", "drm-driver:\n", "drm-"] {
        assert_eq!(DrmClient::parse(text), None, "{text}");
    }
    let odd = client(
        "drm-driver: x\ndrm-client-id: -1\ndrm-engine-: 5 ns\ndrm-engine-a:b: 1 ns\n\u{fffd}",
    );
    assert_eq!((odd.id, odd.memory_bytes()), (None, None));
    let many: String = (0..10_000).map(|n| format!("drm-engine-{n}: 1 ns\n")).collect();
    assert_eq!(client(&format!("drm-driver: x\n{many}")).engines.len(), MOST);
}

#[test]
fn a_counter_that_steps_back_and_catches_up_is_no_work() {
    let at = |ns: u64| client(&format!("drm-driver: x\ndrm-engine-gfx: {ns} ns"));
    let (first, mut second, mut third) = (at(100), at(90), at(110));
    second.keep_larger(&first);
    assert_eq!(second.shares(&first, 100)["gfx"], 0);
    third.keep_larger(&second);
    assert_eq!(third.shares(&second, 100)["gfx"], 100_000);
}
