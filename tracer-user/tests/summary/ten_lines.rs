//! The report in ten lines.

use jobtrace::{
    model::tables::fact,
    report::{Report, Whole, short},
    view::Style,
};

use crate::{
    fixtures,
    reports::{record, slurm},
    told::bare,
};

const USUAL: Style = Style { width: 80, color: false, unicode: true };

#[test]
fn ten_lines_at_most_however_much_there_is_to_say() {
    let hostile = record(fixtures::hostile());
    for record in
        [hostile, slurm(fixtures::gpus::gpus_held(), 60), slurm(fixtures::io_bound(), 20), bare()]
    {
        for (width, unicode) in [(40, false), (80, true), (100, true)] {
            let report = Report::of(&Whole::of(vec![record.clone()]).unwrap(), unicode);
            let text = short(
                &report,
                "4711 --from /shared/records",
                &Style { width, unicode, color: false },
            );
            let lines: Vec<_> = text.lines().collect();
            assert!((4..=10).contains(&lines.len()), "{text}");
            let fits = |line: &&str| jobtrace::base::text::width(line) <= width;
            assert!(lines[..lines.len() - 1].iter().all(fits), "{text}");
            assert!(!text.contains('\u{1b}'), "{text}");
            assert!(lines[0].starts_with("jobtrace: "), "{text}");
            let last = lines[lines.len() - 1];
            let whole = "  all of it: jobtrace report 4711 --from /shared/records";
            assert_eq!(last, whole, "{text}");
        }
    }
    let report = Report::of(&Whole::of(vec![slurm(fixtures::serial(), 60)]).unwrap(), true);
    let expected = "\
jobtrace: python ended after 1 h 23 min
  Cores 12 %: 0.99 of 8 cores used on average (12 %), 1.01 at the busiest moment
  Memory 16 %: 2.50 GiB needed at its peak of 16 GiB allowed, 64 GiB asked; wit…
  Time 6 %: 1 h 23 min of the 1 d 0 h asked
  • it needed 2.50 GiB of the 64 GiB of memory asked (4 %), file cache not
    included: --mem=3G
  • 0.99 of 8 cores used: serial as it is, so more cores do not make it faster:
    --cpus-per-task=1
  all of it: jobtrace report 4711 --from /shared/records
";
    assert_eq!(short(&report, "4711 --from /shared/records", &USUAL), expected);
    let mut running = slurm(fixtures::cpu_bound(), 10);
    running.facts.set(const { fact("end") }, None);
    running.totals.exit = None;
    let text = short(&Report::of(&Whole::of(vec![running]).unwrap(), true), "4711", &USUAL);
    assert!(text.lines().next().unwrap().contains(" so far, after "), "{text}");
}
