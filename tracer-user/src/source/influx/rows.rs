//! Rows of an answer as the points that were written, and what they tell.
//!
//! Pure.

use serde_json::Value;

use super::ask::Rows;
use crate::{
    lines::decode::{Told, decode, is_float},
    model::point::{FieldValue, Name, Point},
};

/// What the rows tell, one by one, with the time of each; rows that no table knows are left out.
pub fn told(rows: &Rows) -> impl Iterator<Item = Told> + '_ {
    rows.values.iter().filter_map(|row| decode(&point(rows, row)?, &mut Default::default()))
}

/// The point that a row tells of; `None` where the row has no time.
fn point(rows: &Rows, row: &[Value]) -> Option<Point> {
    let mut tags: Vec<_> =
        rows.tags.iter().map(|(key, value)| (Name::from(key.clone()), value.clone())).collect();
    let (mut fields, mut time_ns) = (Vec::new(), None);
    for (name, value) in rows.columns.iter().zip(row) {
        match value {
            Value::Number(time) if name == "time" => time_ns = time.as_u64(),
            // A tag that was asked for as a column: the owner.
            Value::String(text) if name == "user" => tags.push((name.clone().into(), text.clone())),
            Value::String(text) => {
                fields.push((name.clone().into(), FieldValue::Text(text.clone())))
            }
            Value::Number(number) => {
                // InfluxDB writes a whole float as an integer.
                let integer = number.as_u64().filter(|_| !is_float(&rows.name, name));
                let value = match integer {
                    Some(integer) => FieldValue::Integer(integer),
                    None => FieldValue::Float(number.as_f64()?),
                };
                fields.push((name.clone().into(), value));
            }
            _ => {}
        }
    }
    tags.retain(|(_, value)| !value.is_empty());
    Some(Point { measurement: rows.name.clone().into(), tags, fields, time_ns: time_ns? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lines::decode::What,
        model::tables::{Cpu, Sched, fact},
    };

    fn rows(text: &str) -> Rows {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn whole_floats_are_floats_again_and_histograms_keep_their_figures() {
        let rows = rows(
            r#"{"name":"job_cpu","tags":{"host":"n1","job":"7","manager":"slurm","cluster":"","user":"ada"},
                "columns":["time","cores_held","tasks"],"values":[[9,4,null],[10,1.5,3]]}"#,
        );
        let told: Vec<_> = told(&rows).collect();
        assert_eq!((told.len(), told[0].time_ns, &*told[0].job.user), (2, 9, "ada"));
        let cores = |at: usize| match &told[at].what {
            What::Values(group, _) => group.number(Cpu::cores_held),
            other => panic!("{other:?}"),
        };
        assert_eq!((cores(0), cores(1)), (Some(4000), Some(1500)));
    }

    #[test]
    fn facts_and_totals_come_back() {
        let rows = rows(
            r#"{"name":"job_info","tags":{"host":"n1","job":"7","manager":"slurm"},
                "columns":["time","start","name","user","sched_on_cpu_ns","block_read_bytes","cpu_cores_held"],
                "values":[[9,5,"md","ada",77,4096,8]]}"#,
        );
        let told = told(&rows).next().unwrap();
        let What::Facts(facts, totals) = told.what else { panic!("facts") };
        assert_eq!((&*told.job.user, facts.text(const { fact("name") })), ("ada", "md"));
        let groups = crate::lines::decode::total_groups(&totals);
        let number = |field: tracer_ebpf::handle::Handle<_>| {
            groups.iter().find(|group| group.is(field.measurement())).unwrap().number(field)
        };
        assert_eq!(number(Sched::on_cpu_ns), Some(77));
        assert_eq!(number(Cpu::cores_held), Some(8000));
        let block = groups.iter().find(|group| group.measurement.key == "block").unwrap();
        assert_eq!(block.tags, ["", "read"]);
    }
}
