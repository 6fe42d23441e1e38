//! Live ring: Grafana's dashboards (docs/grafana) on data of real runs, without a Grafana: every query
//! of every panel and variable is put to the server whose language it speaks, and must be answered.

mod data;
mod expand;
mod influxql;
