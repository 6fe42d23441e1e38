//! Live ring: Grafana's dashboards (docs/grafana) on data of real runs, without a Grafana. Every query of
//! every panel and variable is put to the server whose language it speaks, or to what stands in for it;
//! Grafana's own code and schema say what it makes of dashboards and answers.

mod data;
mod expand;
mod flux;
mod frames;
mod influxql;
mod promql;
mod schema;
mod sql;

use std::process::Output;

/// What the script printed; it must have ended well.
fn well(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stderr), text(&output.stdout));
    text(&output.stdout)
}
