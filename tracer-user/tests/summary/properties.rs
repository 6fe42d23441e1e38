//! What must hold for any run at any width.

use jobtrace::{
    model::{
        group::{Group, Value},
        hist::Hist,
        info::Exit,
        tables::ALL,
        totals::{Peaks, RunTotals},
    },
    view::{MAX_WIDTH, MIN_WIDTH, Style, render},
};
use proptest::prelude::*;
use tracer_ebpf::{loglinear::BUCKETS, table::Kind};
use unicode_width::UnicodeWidthStr;

use crate::{cases, fixtures};

/// Holds a text against what every summary must be.
fn check(text: &str, style: &Style) {
    let most = style.width.clamp(MIN_WIDTH, MAX_WIDTH);
    for line in text.lines() {
        let bare = if style.color { without_colors(line) } else { line.to_owned() };
        assert!(bare.width() <= most, "{} columns of {most}: {bare:?}", bare.width());
        assert!(!bare.chars().any(char::is_control), "a control character in {bare:?}");
        assert!(!bare.contains(['\u{202e}', '\u{200d}', '\u{2067}']), "a mark in {bare:?}");
        assert!(!bare.ends_with(' '), "space at the end of {bare:?}");
        assert!(style.unicode || bare.is_ascii(), "not ASCII: {bare:?}");
    }
    assert!(text.ends_with('\n') && !text.contains("\n\n\n"));
}

/// `line` less the colour codes that the summary itself writes.
fn without_colors(line: &str) -> String {
    let codes = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"];
    codes.iter().fold(line.to_owned(), |line, code| line.replace(code, ""))
}

#[test]
fn every_width_and_look_holds() {
    for (_, totals, _) in cases() {
        // Beyond the widest that is used nothing changes.
        for width in (MIN_WIDTH - 1..=MAX_WIDTH + 1).chain([0, 200, usize::MAX]) {
            for (color, unicode) in [(false, true), (true, false)] {
                let style = Style { width, color, unicode };
                check(&render(&totals, &style), &style);
            }
        }
    }
}

#[test]
fn colors_change_nothing_else() {
    for (_, totals, style) in cases() {
        let plain = render(&totals, &Style { color: false, ..style });
        let colored = render(&totals, &Style { color: true, ..style });
        assert_eq!(without_colors(&colored), plain);
    }
}

#[test]
fn unknown_is_never_zero() {
    let style = Style { width: 80, color: false, unicode: true };
    let text = render(&fixtures::unknown(), &style);
    assert!(text.contains("unknown") && !text.contains(" 0 "), "{text}");
}

/// Any number, the ends of the range among them.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), any::<u64>(), 0..1u64 << 40]
}

fn hist() -> impl Strategy<Value = Hist> {
    let buckets = prop::collection::vec((0..BUCKETS, 0..1u64 << 50), 0..12);
    (number(), number(), buckets)
        .prop_map(|(sum, max, buckets)| Hist::from_buckets(sum, max, buckets))
}

/// Any group of any table, its values drawn from `numbers` and `hists`, absent where they say so.
fn group() -> impl Strategy<Value = Group> {
    let numbers = prop::collection::vec(prop::option::of(number()), 16);
    let hists = prop::collection::vec(prop::option::of(hist()), 16);
    let tags = (".{0,20}", prop_oneof![Just("read"), Just("write"), Just("flush"), Just("odd")]);
    (0..ALL.len(), numbers, hists, tags).prop_map(|(table, numbers, hists, (device, op))| {
        let table = ALL[table];
        let tags = [device.as_str(), op].into_iter().cycle();
        let tags = tags.take(table.tags.len()).map(str::to_owned).collect();
        let mut group = Group::unknown(table, tags);
        for (index, (field, value)) in table.fields.iter().zip(&mut group.values).enumerate() {
            *value = match field.kind {
                Kind::Histogram => hists[index % 16].clone().map(Value::Histogram),
                _ => numbers[index % 16].map(Value::Number),
            };
        }
        group
    })
}

fn totals() -> impl Strategy<Value = RunTotals> {
    let texts = ("\\PC{0,60}|.{0,60}", ".{0,200}", prop::collection::vec(".{0,300}", 0..12));
    let groups = || prop::collection::vec(group(), 0..14);
    let exit = prop::option::of((prop::option::of(any::<i32>()), prop::option::of(any::<i32>())));
    (texts, groups(), groups(), exit, (number(), number(), number())).prop_map(
        |((name, command, notes), groups, own, exit, (elapsed_ns, millicores, rate))| {
            let mut totals = fixtures::unknown();
            totals.info.name = name;
            totals.info.command = command;
            totals.notes = notes;
            totals.stats.groups = groups;
            totals.own = own;
            totals.exit = exit.map(|(code, signal)| Exit { code, signal });
            totals.elapsed_ns = elapsed_ns;
            totals.peaks = Peaks { millicores, disk_bytes_per_s: rate, ..Peaks::default() };
            totals
        },
    )
}

proptest! {
    #[test]
    fn any_run_can_be_shown(
        totals in totals(),
        width in 0usize..220,
        color in any::<bool>(),
        unicode in any::<bool>(),
    ) {
        let style = Style { width, color, unicode };
        check(&render(&totals, &style), &style);
    }
}
