//! What jobs ran, as their lines of `job_software` tell, put into their heads.
//!
//! Pure.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{ask::Rows, query::KEYS};
use crate::record::head::Head;

/// By cluster, node, job, manager and step what was told of each field.
#[derive(Debug, Default)]
pub struct Ran(BTreeMap<[String; 5], BTreeMap<String, Value>>);

impl Ran {
    /// Adds what `rows` tell, the newest first.
    pub fn add(&mut self, rows: &Rows) {
        let tag = |key: &str| rows.tags.get(key).cloned().unwrap_or_default();
        let Some(row) = rows.values.first() else { return };
        let fields = rows.columns.iter().cloned().zip(row.iter().cloned());
        self.0.entry(KEYS.map(tag)).or_insert_with(|| fields.collect());
    }

    /// Tells in `head` what its job ran.
    pub fn tell(&self, head: &mut Head) {
        let key = [&head.cluster, &head.host, &head.job, &head.manager, &head.step];
        let Some(fields) = self.0.get(&key.map(|text| text.clone().unwrap_or_default())) else {
            return;
        };
        let text = |name: &str| fields.get(name)?.as_str().map(str::to_owned);
        let number = |name: &str| fields.get(name)?.as_u64();
        let is_silent = number("opted_out") == Some(1);
        head.software = if is_silent { Some("opted_out".to_owned()) } else { text("level") };
        head.software_partial = number("partial");
        (head.programs, head.libraries) = (text("programs"), text("libraries"));
        (head.packages, head.stacks, head.python) =
            (text("packages"), text("stacks"), text("python"));
        head.python_processes_most = number("python_processes_most");
        head.gpu_library = number("gpu_library");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lines_tell_is_in_the_heads_of_their_jobs() {
        let rows = |job: &str, columns: &str, values: &str| -> Rows {
            let text = format!(
                r#"{{"name":"job_software","tags":{{"host":"n1","job":"{job}","manager":"slurm","cluster":"","step":""}},
                    "columns":["time",{columns}],"values":[[9,{values}]]}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let mut ran = Ran::default();
        ran.add(&rows(
            "7",
            r#""level","packages","gpu_library","partial","lost""#,
            r#""names","numpy 2.4.6",1,0,null"#,
        ));
        ran.add(&rows("8", r#""level","opted_out""#, r#""names",1"#));
        let told = |job: &str| {
            let of = |text: &str| Some(text.to_owned());
            let mut head =
                Head { job: of(job), host: of("n1"), manager: of("slurm"), ..Head::default() };
            ran.tell(&mut head);
            head
        };
        let head = told("7");
        assert_eq!((head.software.as_deref(), head.gpu_library), (Some("names"), Some(1)));
        assert_eq!((head.packages.as_deref(), head.programs), (Some("numpy 2.4.6"), None));
        assert_eq!(told("8").software.as_deref(), Some("opted_out"));
        assert_eq!(told("9").software, None, "nobody watched");
    }
}
