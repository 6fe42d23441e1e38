//! docs/METRICS.md, docs/RECORD.md and docs/FINDINGS.md, from the tables, and docs/CLI.md, from the command line's definition. Explains no
//! field that a table does not.

mod findings;
mod hooks;
mod record;

pub use findings::findings;
pub use record::record;

use std::fmt::Write;

use clap::{CommandFactory, ValueEnum};
use tracer_ebpf::{
    loglinear::{BUCKETS, SUB_BUCKET_BITS, UNIT_BITS, bucket_low},
    table::{Field, Kind, Measurement, Unit},
};

use crate::{
    cli::Cli,
    commands::agent::details::REPEAT_NS,
    lines::clustercockpit::METRICS,
    model::{
        buckets::BucketStyle,
        tables::{self, FACTS, JOB_INFO, JOB_SOFTWARE, SOFTWARE_FIELDS, total_name},
    },
};

const INTRODUCTION: &str = "\
# Metrics

Generated from the tables beside the code by `cargo xtask docs`; do not edit.

Every line of a job has the tags `cluster` (if set), `host`, `job`, `manager`, `step` (agent, if steps are series
of their own) and `user` (if known). Whatever belongs to no job is reported as job `_system` of manager `none`. The
cost of the tracing itself is in `jobtrace_self`, with the job's tags for `jobtrace run` and those of `_system` for
the agent. Time stamps are in nanoseconds. A field that this kernel cannot provide is absent: unknown is not zero.
An interval in which nothing happened to a series writes no line.

The time stamps of the agent's lines are whole multiples of the configured interval, the same on all nodes. The last
lines of an agent that is ended have the time of its end instead: a rate over a time with several lines of a series is
the sum of its values by the sum of `interval_ns`.
All of these lines except `job_info` and `job_hist` also have:

| field | kind | unit | meaning |
| --- | --- | --- | --- |
";

const KINDS: &str = "
How the kinds of fields are to be read and combined:

| kind | value in an interval | over jobs, devices and nodes |
| --- | --- | --- |
| counter | the amount in the interval | add |
| gauge | the state at its end | add |
| peak | the largest value so far, at its end | take the maximum |
| constant | the value | the same everywhere |
| histogram | the values in the interval | add counts and sums |
";

const BUCKET_QUERIES: &str = "
Counts are per interval, so sums over time, jobs and nodes are exact, and restarts need no reset detection. Use
`sum_over_time`, never `rate` or `increase`, over a range of at least one interval:

```text
histogram_quantile(0.99, sum by (le) (sum_over_time(job_hist_bucket{metric=\"sched.run_queue_wait_ns\",job=\"4242\"}[5m])))
histogram_quantile(0.99, sum by (vmrange) (sum_over_time(job_hist_bucket{metric=\"sched.run_queue_wait_ns\",job=\"4242\"}[5m])))
```

The first is PromQL for `prom`, the second MetricsQL for `vmrange`. Sum only jobs with the same profile: cumulative
counts with different bounds cannot be added.
";

/// The whole of docs/METRICS.md; the same for the same tables.
pub fn metrics() -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str(&row(&tables::INTERVAL));
    text.push_str(KINDS);
    text.push_str(&histograms());
    for table in tables::ALL {
        text.push_str(&section(table));
    }
    text.push_str(&job_info());
    text.push_str(&job_software());
    text.push_str(&job_hist());
    text.push_str(&hooks::section());
    text.push_str(&clustercockpit());
    text
}

fn job_info() -> String {
    let mut text = format!(
        "\n## {JOB_INFO}\n\n\
         Facts of a job. `jobtrace run` writes them once, at the end. The agent writes them from the job's start on, \
         again\nwhen it learns more, and every {} minutes. A fact that is not known is absent. In the JSON: `job`, \
         `exit`.\n\n\
         | field | type | meaning |\n| --- | --- | --- |\n",
        REPEAT_NS / 60_000_000_000,
    );
    for fact in FACTS {
        let form = match fact.unit {
            None => "string".to_owned(),
            Some(Unit::Count) => "integer".to_owned(),
            Some(of) => format!("integer, {}", unit(of)),
        };
        let _ = writeln!(text, "| `{}` | {form} | {} |", fact.name, fact.help);
    }
    let example = |table: &Measurement, op, kind| {
        let field = table.fields.iter().find(|field| field.kind == kind);
        field.map_or_else(String::new, |field| format!("`{}`", total_name(table, op, field)))
    };
    let _ = write!(
        text,
        "\nThe agent's last `job_info` of a job, the one with `end`, also has the job's totals on this node: every\n\
         field of the measurements above, named after the measurement's key in the JSON and the field ({}),\n\
         for a histogram its sum ({}), for block I/O by operation ({}), for the\n\
         network by family ({}).\n\
         They combine all devices: counters and gauges are added; of peaks it is the largest, of constants any one.\n",
        example(&tables::SCHED, None, Kind::Counter),
        example(&tables::SCHED, None, Kind::Histogram),
        example(&tables::BLOCK, Some("read"), Kind::Counter),
        example(&tables::NET, Some("tcp"), Kind::Counter),
    );
    text
}

fn job_software() -> String {
    let mut text = format!(
        "\n## {JOB_SOFTWARE}\n\n\
         Which software a job ran on this node, written by the agent with `census`. One series for each job and node, with\n\
         names in fields and never in tags, of bounded length. Nothing of a user's own has a name here\n\
         ([PRIVACY.md](PRIVACY.md)); an import is not yet a use. It comes beside `job_info`, when there is more\n\
         to tell and once the job has ended. The tag `user` is absent, or hashed, where the site\n\
         wants that. A field that is unknown is absent. In the JSON: `software` ([RECORD.md](RECORD.md)).\n\n\
         | field | type | meaning |\n| --- | --- | --- |\n",
    );
    for (name, form, help) in SOFTWARE_FIELDS {
        let _ = writeln!(text, "| `{name}` | {form} | {help} |");
    }
    text
}

fn job_hist() -> String {
    let mut text = String::from(
        "\n## job_hist\n\n\
         The buckets of the histograms, written by the agent in the profiles `histogram` (one bucket to each power\n\
         of two) and `full` (four, as by `jobtrace run`). One series for each bucket, with the tags of its\n\
         measurement, the tag `metric`, made of the measurement's key and the field (`sched.run_queue_wait_ns`), and:\n\n\
         | bucket style | tag | field | meaning |\n| --- | --- | --- | --- |\n",
    );
    for style in BucketStyle::value_variants() {
        let name = style.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned());
        let (tag, field) = (style.tag(), style.field());
        let (of_tag, of_field) = (style.tag_help(), style.field_help());
        let _ = writeln!(text, "| `{name}` | `{tag}`: {of_tag} | `{field}` | {of_field} |");
    }
    text + BUCKET_QUERIES
}

fn clustercockpit() -> String {
    let mut text = String::from(
        "\n## ClusterCockpit\n\n\
         With `export.style = \"clustercockpit\"` the agent writes the following metrics instead, one per line:\n\
         `NAME,cluster=…,hostname=…,type=… value=… SECONDS`. They cover the whole node, jobs \
         and the\nrest together; `accelerator` metrics are per GPU, with NVML's index as `type-id`. Unknown values \
         write no line.\n\n\
         | metric | type | unit | meaning |\n| --- | --- | --- | --- |\n",
    );
    for metric in METRICS {
        let place = if metric.is_accelerators() { "accelerator" } else { "node" };
        let _ =
            writeln!(text, "| `{}` | {place} | {} | {} |", metric.name, metric.unit, metric.help);
    }
    text
}

fn histograms() -> String {
    format!(
        "
## Histograms

A histogram `x` consists of the fields `x_count` (an integer), `x_sum` and, unless it is empty, `x_min`, `x_max`,
`x_p50`, `x_p90`, `x_p99`, `x_p999`, in its unit; they are integers unless the table says floats. Count and sum
are exact. `max` is exact over a whole run; in an interval without a new largest value it is the upper bound of
its bucket. `min` is the lower bound of the lowest bucket, and percentiles are the upper bounds of theirs, but
never above `max`. There are {BUCKETS} buckets, {} to each power of two from {} on; the last one begins at
{} and has no upper bound. Buckets count whole units; for floats thousandths, for ratios millionths.
In the JSON:
`{{\"count\",\"sum\",\"min\",\"max\",\"p50\",\"p90\",\"p99\",\"p999\",\"buckets\":[[largest value,count],…]}}`.
",
        1 << SUB_BUCKET_BITS,
        (1 << SUB_BUCKET_BITS) << UNIT_BITS,
        bucket_low(BUCKETS - 1),
    )
}

fn section(table: &Measurement) -> String {
    let mut text = format!("\n## {}\n\n{} In the JSON: `{}`", table.name, table.help, table.key);
    if !table.tags.is_empty() {
        let tags: Vec<_> = table.tags.iter().map(|tag| format!("`{tag}`")).collect();
        let _ = write!(text, ", a list. Additional tags: {}", tags.join(", "));
    }
    text.push_str(".\n\n| field | kind | unit | meaning |\n| --- | --- | --- | --- |\n");
    text.extend(table.fields.iter().map(row));
    text
}

fn row(field: &Field) -> String {
    let (kind, unit) = (kind(field.kind), unit(field.unit));
    format!("| `{}` | {kind} | {unit} | {} |\n", field.name, field.help.replace('|', "\\|"))
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Peak => "peak",
        Kind::Constant => "constant",
        Kind::Histogram => "histogram",
    }
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "number",
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        Unit::ByteSeconds => "bytes × s",
        Unit::Millicores => "cores (a float)",
        Unit::PartsPerMillion => "ratio (a float)",
        Unit::Milliwatts => "watts (a float)",
        Unit::Millijoules => "joules (a float)",
        Unit::Hertz => "Hz",
        Unit::Celsius => "°C",
    }
}

/// docs/CLI.md: the help of every command, from the command line's definition.
pub fn cli() -> String {
    let mut text = String::from(
        "# Command line\n\nGenerated from the commands' own definitions by `cargo xtask docs`; do not edit.\n",
    );
    let mut program = Cli::command().term_width(96);
    program.build();
    for command in program.get_subcommands_mut().filter(|command| !command.is_hide_set()) {
        let name = command.get_name().to_owned();
        if name == "help" {
            continue;
        }
        let help = command.render_long_help().to_string();
        let lines: Vec<_> = help.lines().map(str::trim_end).collect();
        text += &format!("\n## jobtrace {name}\n\n```text\n{}\n```\n", lines.join("\n").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{buckets::le, hist::QUANTILES};

    #[test]
    fn every_measurement_and_field_has_its_row() {
        let text = metrics();
        for table in tables::ALL {
            let (_, rest) = text.split_once(&format!("\n## {}\n", table.name)).unwrap();
            let own = rest.split("\n## ").next().unwrap();
            for field in table.fields {
                let rows = own.matches(&format!("\n| `{}` |", field.name)).count();
                assert_eq!(rows, 1, "{} {}", table.name, field.name);
            }
        }
        assert!(text.contains(&le(Unit::Count, BUCKETS - 1)));
        assert!(QUANTILES.iter().all(|(name, _)| text.contains(&format!("`x_{name}`"))));
    }

    #[test]
    fn rows_have_as_many_columns_as_their_head() {
        let columns = |line: &str| line.replace("\\|", "").matches('|').count();
        let mut head = 0;
        for line in [metrics(), record(), findings()].concat().lines() {
            match columns(line) {
                0 => head = 0,
                count if head == 0 => head = count,
                count => assert_eq!(count, head, "{line}"),
            }
        }
    }
}
