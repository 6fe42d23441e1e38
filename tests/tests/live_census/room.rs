//! Where the kernel's table or its ring has no room, what is missing is counted.

use std::path::Path;

use jobtrace::{model::seen::Seen, probes::Room};
use jobtrace_tests::rig::mount::Ext4;

use crate::{programs::copies, watch::Watch};

const PROGRAMS: u64 = 300;
/// Nobody takes anything out of the ring before the job's end.
const WIDE: Room = Room { sights: 16_384, ring_bytes: 4 << 20 };

/// What is seen of so many programs in `folder`, where there is so much `room`.
fn seen(folder: &Path, room: Room) -> Seen {
    let watch = Watch::begin("census-room", room);
    let script = format!("for f in {}/*; do $f || exit 1; done", folder.display());
    let status = watch.job.command(&["sh", "-c", &script]).status().unwrap();
    assert!(status.success(), "{status}");
    watch.end()
}

fn things(seen: &Seen) -> u64 {
    (seen.programs.len() + seen.libraries.len() + seen.packages.len()) as u64
}

#[test]
fn what_finds_no_room_in_the_table_or_in_the_ring_is_counted() {
    let disk = Ext4::mount(128 << 20).unwrap();
    let folder = copies(&disk.path().join("own"), PROGRAMS);
    let whole = seen(&folder, WIDE);
    assert_eq!(whole.lost, 0);
    let all = things(&whole);
    assert!(all > 2 * PROGRAMS, "each program and its libraries: {all}");
    let narrow =
        [("table", Room { sights: 64, ..WIDE }), ("ring", Room { ring_bytes: 16 << 10, ..WIDE })];
    for (what, room) in narrow {
        let part = seen(&folder, room);
        let told = things(&part);
        eprintln!("{what}: {told} of {all} told, {} lost", part.lost);
        assert!(told > 0 && told < all / 4, "{what}: {told} of {all}");
        // What is met again and found no room is counted again.
        assert!(part.lost >= all - told, "{what}: {told} of {all} told, {} lost", part.lost);
        let known = part.programs.iter().all(|program| whole.programs.contains(program));
        assert!(known, "{what}: {:?}", part.programs);
    }
}
