//! Reports as HTML: what must hold for any page. tests/tests/live_report.rs opens them in a browser.

use jobtrace::{
    model::tables::{MEMORY, Memory, SCHED, Sched},
    record::Record,
    report::{Report, Whole, html::html},
};

use crate::{
    fixtures,
    reports::{record, slurm, uneven},
};

/// A day on 64 nodes, no two columns of which are alike.
fn a_day() -> Vec<Record> {
    let mut random = 1u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random >> 33
    };
    let mut nodes = uneven(64);
    for node in &mut nodes {
        let begin_ns = node.timeline.begin_ns();
        node.timeline = jobtrace::record::timeline::Timeline::new(begin_ns);
        for _ in 0..240 {
            let mut groups = node.totals.stats.groups.clone();
            for group in &mut groups {
                if group.is(&SCHED) {
                    group.set(Sched::on_cpu_ns, next() * 300);
                }
                if group.is(&MEMORY) {
                    group.set(Memory::anon_bytes, next());
                    group.set(Memory::shmem_bytes, 0);
                }
            }
            node.timeline.add(360_000_000_000, &groups);
        }
    }
    nodes
}

fn page(records: Vec<Record>) -> String {
    let whole = Whole::of(records).unwrap();
    html(&whole, &Report::of(&whole, true)).unwrap()
}

#[test]
fn a_day_on_64_nodes_is_small_and_all_of_it_is_drawn() {
    let text = page(a_day());
    assert!(text.len() < 300_000, "{} bytes", text.len());
    assert!(text.len() > 20_000, "{} bytes", text.len());
    for number in 1..=6 {
        assert!(text.contains(&format!("<path class=\"h{number}\"")), "shade {number}");
    }
    for name in ["Cores over time", "Memory over time", "Disk over time", "64 nodes from top"] {
        assert!(text.contains(name), "{name}");
    }
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(folder.join("a_day.html"), text).unwrap();
}

#[test]
fn nothing_from_outside_is_markup_and_nothing_is_loaded() {
    let mut job = fixtures::hostile();
    let evil = "</title><script>alert(1)</script><img src=x onerror=alert(1)>\"'&";
    job.info.name = evil.into();
    job.info.command = evil.into();
    job.notes = vec![evil.into()];
    let text = page(vec![record(job)]);
    for markup in ["<script", "<img", "onerror=alert(1)>", "http://", "https://", "url("] {
        let inside = text.matches(markup).count();
        assert_eq!(inside, 0, "{markup}: {text}");
    }
    assert!(text.contains("&#60;script&#62;") || text.contains("&lt;script&gt;"), "{text}");
    assert_eq!(text.matches("<title>").count(), text.matches("</title>").count());
}

/// What is told of operations on files: paths and threads with the names that programs chose, each duration in its row.
#[test]
fn operations_on_files_have_a_map_and_tables_and_their_names_are_no_markup() {
    let mut job = record(fixtures::file_ops::named());
    // Of a minute that begins where the job does: each column of time is two of the map.
    let begin_ns = fixtures::file_ops::named().info.start_wall_ns;
    job.timeline = jobtrace::record::timeline::Timeline::new(begin_ns);
    job.timeline.add(60_000_000_000, &[]);
    let text = page(vec![job]);
    for title in
        ["How long I/O took over time", "Slowest operations", "I/O by program", "I/O by thread"]
    {
        assert_eq!(text.matches(&format!("<h2>{title}</h2>")).count(), 1, "{title}");
    }
    for markup in ["<b>", "</td>lib", "<script", "\u{1b}"] {
        assert!(!text.contains(markup), "{markup:?} in {text}");
    }
    assert!(text.contains("uneven: thread 4711"), "{text}");
    assert!(text.contains("1.20k operations on files are in no row of a file or folder"), "{text}");
    // The one of three seconds: in the topmost of eleven rows, after 49 of 60 seconds.
    let (_, map) = text.split_once("durations from bottom to top").unwrap();
    assert!(map.contains("viewBox=\"0 0 120 11\""), "{map}");
    assert!(map.contains("M98 0h2v1h-2z"), "{map}");
    assert_eq!(map.matches(" 0h2v1h-2z").count(), 1, "no other took as long: {map}");
}

#[test]
fn every_drawing_has_its_words_and_every_element_its_end() {
    for records in [
        uneven(8),
        vec![slurm(fixtures::gpus::gpus_held(), 60)],
        vec![record(fixtures::short())],
        vec![record(fixtures::file_ops::named())],
    ] {
        let text = page(records);
        let drawings = text.matches("<svg ").count();
        // Those of a legend stand beside their words.
        let named = text.matches("role=\"img\" aria-label=\"").count();
        assert_eq!(named + text.matches("<svg viewBox=\"0 0 1 1\" aria-hidden").count(), drawings);
        for element in ["section", "div", "svg", "table", "tr", "td", "span", "p", "ol", "li", "h2"]
        {
            let begins = text.matches(&format!("<{element}>")).count()
                + text.matches(&format!("<{element} ")).count();
            assert_eq!(begins, text.matches(&format!("</{element}>")).count(), "{element}");
        }
    }
}
