//! The tables of docs/grafana/README.md: which file is for which data base, and what each panel answers.

use std::fmt::Write;

use super::Written;
use crate::markdown::Table;

/// The sections by their names.
pub fn sections(all: &[Written]) -> Vec<(&'static str, String)> {
    vec![("files", files(all)), ("panels", panels(all))]
}

fn files(all: &[Written]) -> String {
    let mut table = Table::new("files | for | data source");
    for (key, server) in [
        ("influxql", "InfluxDB 1.x"),
        ("flux", "InfluxDB 2"),
        ("sql", "InfluxDB 3"),
        ("promql", "VictoriaMetrics"),
    ] {
        let of_it = all.iter().filter(|written| written.edition.key == key);
        let files: Vec<_> = of_it.map(|w| format!("[{0}]({0})", w.file)).collect();
        let source = format!("[{key}.yaml](provisioning/datasources/{key}.yaml)");
        table.row([&files.join(", "), &server, &source]);
    }
    table.to_string()
}

fn panels(all: &[Written]) -> String {
    let mut text = String::new();
    for Written { dashboard, .. } in all.iter().filter(|written| written.edition.key == "influxql")
    {
        let mut table = Table::new("row | panel | what it answers");
        for row in &dashboard.rows {
            for panel in &row.panels {
                table.row([&row.title, &panel.title, &panel.help.replace('|', "\\|")]);
            }
        }
        let _ = writeln!(text, "### {}\n{}\n\n{table}", dashboard.title, dashboard.help);
    }
    text
}
