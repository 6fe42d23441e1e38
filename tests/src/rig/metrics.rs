//! A private VictoriaMetrics: what it stores of lines posted to it.

use std::{fs, process::Command, time::Duration};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use tempfile::TempDir;
use ureq::Agent;

use super::{daemon::Daemon, folder, free_port, program};

const PATIENCE: Duration = Duration::from_secs(20);

/// A server with data of its own.
#[derive(Debug)]
pub struct Metrics {
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

impl Metrics {
    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    /// When VictoriaMetrics is not installed or does not start.
    pub fn start() -> Result<Self> {
        let server = program("victoria-metrics", "victoria-metrics")?;
        let folder = folder("metrics")?;
        let port = free_port()?;
        let data = folder.path().join("data");
        fs::create_dir(&data)?;
        let mut command = Command::new(server);
        command.arg("-storageDataPath").arg(&data);
        command.arg(format!("-httpListenAddr=127.0.0.1:{port}"));
        // Whatever the time stamps are.
        command.args(["-retentionPeriod=100y", "-loggerLevel=ERROR"]);
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
}
