//! A private VictoriaMetrics: lines in, PromQL or all that is stored out.

use std::{collections::BTreeMap, process::Command, time::Duration};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;
use ureq::Agent;

use super::{PATIENCE, daemon::Daemon, folder, free_port, program};

/// A server with data of its own.
#[derive(Debug)]
pub struct Victoria {
    _server: Daemon,
    port: u16,
    agent: Agent,
    _folder: TempDir,
}

/// A series: its name, `MEASUREMENT_FIELD`, under the key `__name__`, and its tags.
pub type Name = BTreeMap<String, String>;

/// A line of an export.
#[derive(Deserialize)]
struct Line {
    metric: Name,
    values: Vec<f64>,
    timestamps: Vec<i64>,
}

impl Victoria {
    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    /// When VictoriaMetrics is not installed or does not start.
    pub fn start() -> Result<Self> {
        let server = program("victoria-metrics", "victoria-metrics")?;
        let folder = folder("victoria")?;
        let port = free_port()?;
        let mut command = Command::new(server);
        command.arg("-storageDataPath").arg(folder.path().join("data"));
        command.arg(format!("-httpListenAddr=127.0.0.1:{port}"));
        // What was written a moment ago is to be seen, and no earlier answer.
        command.args(["-search.latencyOffset=0s", "-search.disableCache", "-retentionPeriod=100y"]);
        // Else the last steps of a range that ends about now are those before, told again.
        command.arg("-search.maxStepForPointsAdjustment=1ms");
        let mut server = Daemon::start(&mut command, &folder.path().join("log"))?;
        let timeout = Some(Duration::from_secs(30));
        let settings = Agent::config_builder().http_status_as_error(false).timeout_global(timeout);
        let agent = Agent::new_with_config(settings.proxy(None).build());
        let health = format!("http://127.0.0.1:{port}/health");
        server
            .wait_until("VictoriaMetrics answers", PATIENCE, || agent.get(&health).call().ok())?;
        Ok(Self { _server: server, port, agent, _folder: folder })
    }

    /// The address of its API, without a `/` at its end.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Posts line protocol with stamps in nanoseconds, and makes it visible.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn write_lp(&self, lines: &[u8]) -> Result<()> {
        let answer = self.agent.post(format!("{}/write?precision=ns", self.url())).send(lines)?;
        ensure!(answer.status() == 204, "VictoriaMetrics answers {}", answer.status());
        self.agent.get(format!("{}/internal/force_flush", self.url())).call()?;
        Ok(())
    }

    /// The series of a query over a time in milliseconds, each with `metric` and `values`; for the last
    /// moment alone (`value`) where `step_ms` is `None`.
    ///
    /// # Errors
    /// When the server refuses the query.
    pub fn query(
        &self,
        query: &str,
        range_ms: (i64, i64),
        step_ms: Option<i64>,
    ) -> Result<Vec<Value>> {
        let seconds = |ms: i64| format!("{}.{:03}", ms / 1000, ms % 1000);
        let mut form = vec![("query", query.to_owned())];
        let path = match step_ms {
            Some(step) => {
                form.push(("start", seconds(range_ms.0)));
                form.push(("end", seconds(range_ms.1)));
                form.push(("step", format!("{step}ms")));
                "query_range"
            }
            None => {
                form.push(("time", seconds(range_ms.1)));
                "query"
            }
        };
        self.ask(path, form, query)
    }

    /// What Grafana's `label_values(selector, label)` asks.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn label_values(
        &self,
        selector: &str,
        label: &str,
        range_ms: (i64, i64),
    ) -> Result<Vec<Value>> {
        let form = vec![
            ("match[]", selector.to_owned()),
            ("start", (range_ms.0 / 1000).to_string()),
            ("end", (range_ms.1 / 1000 + 1).to_string()),
        ];
        self.ask(&format!("label/{label}/values"), form, selector)
    }

    /// All that is stored: series and stamp in milliseconds, with their values, one for each time it
    /// was stored.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn all(&self) -> Result<BTreeMap<(Name, i64), Vec<f64>>> {
        // What came is visible after a second, or now.
        self.agent.get(format!("{}/internal/force_flush", self.url())).call()?;
        let export = format!("{}/api/v1/export", self.url());
        let request = self.agent.get(&export).query("match[]", "{__name__!=\"\"}");
        // By itself it ends now, and the last interval's stamp may lie a moment ahead.
        let request = request.query("start", "0").query("end", "4102444800");
        let mut response = request.call().context("VictoriaMetrics does not answer")?;
        let text = response.body_mut().with_config().limit(1 << 30).read_to_string()?;
        ensure!(response.status().as_u16() == 200, "VictoriaMetrics refuses: {text}");
        let mut found: BTreeMap<(Name, i64), Vec<f64>> = BTreeMap::new();
        for line in text.lines() {
            let line: Line = serde_json::from_str(line).with_context(|| line.to_owned())?;
            for (value, stamp) in line.values.into_iter().zip(line.timestamps) {
                found.entry((line.metric.clone(), stamp)).or_default().push(value);
            }
        }
        Ok(found)
    }

    fn ask(&self, path: &str, form: Vec<(&str, String)>, query: &str) -> Result<Vec<Value>> {
        let url = format!("{}/api/v1/{path}", self.url());
        let mut answer = self.agent.post(&url).send_form(form)?;
        let text = answer.body_mut().with_config().limit(1 << 28).read_to_string()?;
        let value: Value =
            serde_json::from_str(&text).with_context(|| format!("{query}: {text}"))?;
        ensure!(value["status"] == "success", "VictoriaMetrics refuses {query}: {text}");
        let data = if value["data"].is_array() { &value["data"] } else { &value["data"]["result"] };
        Ok(data.as_array().cloned().unwrap_or_default())
    }
}
