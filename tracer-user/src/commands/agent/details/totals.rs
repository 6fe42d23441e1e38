//! A job's totals on this node, for the line at its end.

use std::collections::BTreeMap;

use tracer_ebpf::table::Kind;

use crate::model::{
    group::{Group, Value},
    point::{FieldValue, Name},
    points::number_value,
    tables::total_name,
};

/// The totals in `groups` as fields: `sched_on_cpu_ns`, `sched_run_queue_wait_ns_sum`, `block_read_bytes`.
pub fn fields(groups: &[Group]) -> Vec<(Name, FieldValue)> {
    let mut fields = BTreeMap::<String, FieldValue>::new();
    for group in groups {
        let last_tag = group.tags.last().map(String::as_str);
        for (field, value) in group.measurement.fields.iter().zip(&group.values) {
            let number = match value {
                Some(Value::Number(number)) => *number,
                Some(Value::Histogram(hist)) => hist.sum,
                None => continue,
            };
            let name = total_name(group.measurement, last_tag, field);
            let value = number_value(field.unit, number);
            match (fields.get_mut(&name), value) {
                // Alike, or of one device: no sum means anything.
                (Some(_), _) if field.kind == Kind::Constant => {}
                // The highest of any device.
                (Some(FieldValue::Integer(most)), FieldValue::Integer(other))
                    if field.kind == Kind::Peak =>
                {
                    *most = (*most).max(other);
                }
                (Some(FieldValue::Integer(sum)), FieldValue::Integer(more)) => {
                    *sum = sum.saturating_add(more);
                }
                (Some(FieldValue::Float(sum)), FieldValue::Float(more)) => *sum += more,
                (_, value) => drop(fields.insert(name, value)),
            }
        }
    }
    fields.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tables::{GPU, Gpu};

    #[test]
    fn the_devices_of_a_job_are_one_in_its_totals() {
        let mut groups = Vec::new();
        for (uuid, celsius) in [("GPU-a", 61), ("GPU-b", 55)] {
            let tags = ["0", uuid, "H100", "nvidia", ""].map(str::to_owned);
            let mut group = Group::unknown(&GPU, tags.into());
            group.set(Gpu::energy_joules, 1_500);
            group.set(Gpu::held_ns, 7);
            group.set(Gpu::xid_last, 31);
            group.set(Gpu::temperature_max_celsius, celsius);
            groups.push(group);
        }
        let fields: BTreeMap<_, _> = fields(&groups).into_iter().collect();
        assert_eq!(fields["gpu_energy_joules"], FieldValue::Float(3.0));
        assert_eq!(fields["gpu_held_ns"], FieldValue::Integer(14));
        assert_eq!(fields["gpu_xid_last"], FieldValue::Integer(31));
        assert_eq!(fields["gpu_temperature_max_celsius"], FieldValue::Integer(61));
    }
}
