//! A private InfluxDB 1.x, and the three ways into and out of it: lines over HTTP, queries, and
//! `influx -import` of a file.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use flate2::{Compression, write::GzEncoder};
use serde_json::{Map, Value};
use tempfile::TempDir;
use ureq::{Agent, Body, RequestBuilder, http::Response, typestate::WithBody};

use super::{PATIENCE, daemon::Daemon, folder, free_port, program};

/// A server with data of its own.
#[derive(Debug)]
pub struct Influx {
    server: Daemon,
    port: u16,
    agent: Agent,
    client: PathBuf,
    /// Name and password.
    user: Option<(String, String)>,
    folder: TempDir,
}

/// What the server said to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 204 where all points were stored, 400 where one was not.
    pub status: u16,
    /// The reason, as JSON, where there is one.
    pub body: String,
}

/// A row of a query's result: tags of its series, columns, and `name`, the measurement, under the
/// key `measurement`.
pub type Row = Map<String, Value>;

impl Influx {
    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    /// When InfluxDB is not installed or does not start.
    pub fn start() -> Result<Self> {
        Self::start_as(configuration)
    }

    /// The same with a configuration of the caller's own: for a folder, a port of the API and another.
    /// Where it lets only users in, [`Self::log_in`] comes next.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_as(configuration: impl Fn(&Path, u16, u16) -> String) -> Result<Self> {
        let (server, client) =
            (program("influxd", "influxdb")?, program("influx", "influxdb-client")?);
        let folder = folder("influx")?;
        let (port, rpc) = (free_port()?, free_port()?);
        let settings = folder.path().join("influxdb.conf");
        fs::write(&settings, configuration(folder.path(), port, rpc))?;
        let log = folder.path().join("log");
        let mut server = Daemon::start(Command::new(server).arg("-config").arg(&settings), &log)?;
        let timeout = Some(Duration::from_secs(120));
        let settings = Agent::config_builder().http_status_as_error(false).timeout_global(timeout);
        let agent = Agent::new_with_config(settings.proxy(None).build());
        let ping = format!("http://127.0.0.1:{port}/ping");
        server.wait_until("InfluxDB answers", PATIENCE, || agent.get(&ping).call().ok())?;
        Ok(Self { server, port, agent, client, user: None, folder })
    }

    /// The address of its API, without a `/` at its end.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Makes the first user, an administrator, and asks as him from now on.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn log_in(&mut self, name: &str, password: &str) -> Result<()> {
        let make =
            format!(r#"CREATE USER "{name}" WITH PASSWORD '{password}' WITH ALL PRIVILEGES"#);
        self.ask("", &make)?;
        self.user = Some((name.to_owned(), password.to_owned()));
        Ok(())
    }

    /// Runs a file of statements, as an administrator does: `influx < FILE`. What it printed has the
    /// errors.
    ///
    /// # Errors
    /// When the client cannot be started.
    pub fn run_file(&self, file: &Path) -> Result<Output> {
        let mut command = Command::new(&self.client);
        command.args(["-host", "127.0.0.1", "-port", &self.port.to_string()]);
        if let Some((name, password)) = &self.user {
            command.args(["-username", name, "-password", password]);
        }
        command.stdin(fs::File::open(file)?).output().context("cannot start influx")
    }

    /// Makes a data base.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn create_db(&self, name: &str) -> Result<()> {
        self.ask("", &format!(r#"CREATE DATABASE "{name}""#)).map(|_| ())
    }

    /// Posts line protocol with stamps in nanoseconds, packed where `gzip`.
    ///
    /// # Errors
    /// When the server does not answer; that it refuses the lines is an answer.
    pub fn write_lp(&self, db: &str, lines: &[u8], gzip: bool) -> Result<Answer> {
        if gzip {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(lines)?;
            return self.write_packed(db, &packed.finish()?);
        }
        let response = self.write_request(db).send(lines);
        read_answer(response.context("InfluxDB does not answer")?)
    }

    /// The same with lines that are packed already.
    ///
    /// # Errors
    /// As [`Self::write_lp`].
    pub fn write_packed(&self, db: &str, gzip: &[u8]) -> Result<Answer> {
        let response = self.write_request(db).header("Content-Encoding", "gzip").send(gzip);
        read_answer(response.context("InfluxDB does not answer")?)
    }

    fn write_request(&self, db: &str) -> RequestBuilder<WithBody> {
        let url = format!("{}/write?precision=ns", self.url());
        self.agent.post(&url).query("db", db)
    }

    /// Its version.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn version(&self) -> Result<String> {
        let response = self.agent.get(format!("{}/ping", self.url())).call()?;
        let version = response.headers().get("X-Influxdb-Version");
        Ok(version.and_then(|v| v.to_str().ok()).unwrap_or("unknown").to_owned())
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.server.pid()
    }

    /// Where its data are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The rows of all series of an InfluxQL query, times in nanoseconds.
    ///
    /// # Errors
    /// When the server refuses the query.
    pub fn query(&self, db: &str, query: &str) -> Result<Vec<Row>> {
        let answer = self.ask(db, query)?;
        let mut rows = Vec::new();
        for result in list(&answer["results"]) {
            for series in list(&result["series"]) {
                rows.extend(list(&series["values"]).iter().map(|values| row(series, list(values))));
            }
        }
        Ok(rows)
    }

    /// Runs `influx -import` on a file: it begins with `# DML` and `# CONTEXT-DATABASE: <db>`.
    /// `compressed` for gzip. What it printed tells how many points failed.
    ///
    /// # Errors
    /// When the client cannot be started.
    pub fn import(&self, file: &Path, compressed: bool) -> Result<Output> {
        let mut command = Command::new(&self.client);
        command.args(["-host", "127.0.0.1", "-port", &self.port.to_string(), "-import"]);
        command.arg("-path").arg(file).args(["-precision", "ns"]);
        if compressed {
            command.arg("-compressed");
        }
        command.output().context("cannot start influx")
    }

    fn ask(&self, db: &str, query: &str) -> Result<Value> {
        let url = format!("{}/query", self.url());
        let form = [("db", db), ("q", query), ("epoch", "ns")];
        let mut request = self.agent.post(&url);
        if let Some((name, password)) = &self.user {
            request = request.query("u", name).query("p", password);
        }
        let answer = read_answer(request.send_form(form)?)?;
        let value: Value = serde_json::from_str(&answer.body)
            .with_context(|| format!("InfluxDB answers {answer:?} to {query}"))?;
        let error = value.get("error").or_else(|| value["results"][0].get("error"));
        ensure!(answer.status == 200 && error.is_none(), "InfluxDB refuses {query}: {answer:?}");
        Ok(value)
    }
}

fn read_answer(mut response: Response<Body>) -> Result<Answer> {
    let body = response.body_mut().with_config().limit(1 << 30).read_to_string()?;
    Ok(Answer { status: response.status().as_u16(), body })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn row(series: &Value, values: &[Value]) -> Row {
    let mut row = series["tags"].as_object().cloned().unwrap_or_default();
    row.insert("measurement".into(), series["name"].clone());
    let columns = list(&series["columns"]).iter().filter_map(Value::as_str);
    row.extend(columns.map(str::to_owned).zip(values.iter().cloned()));
    row
}

/// A configuration for a folder, a port of the API and another, with the index that takes any number of series.
pub fn configuration(folder: &Path, port: u16, rpc: u16) -> String {
    let folder = folder.display();
    format!(
        r#"reporting-enabled = false
bind-address = "127.0.0.1:{rpc}"
[meta]
  dir = "{folder}/meta"
[data]
  dir = "{folder}/data"
  wal-dir = "{folder}/wal"
  index-version = "tsi1"
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
  log-enabled = false
"#
    )
}
