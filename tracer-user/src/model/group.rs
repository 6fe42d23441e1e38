//! The values of one measurement, read by its table: how they subtract and how they add.

use std::{collections::BTreeMap, ptr};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::SerializeMap as _,
};
use tracer_ebpf::{
    handle::{Handle, Histogram, Number},
    table::{Field, Kind, Measurement},
};

use super::{held::is_unlimited, hist::Hist, point::Name, tables, values::Values};

/// One value of a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Of every kind but histograms.
    Number(u64),
    /// A histogram.
    Histogram(Hist),
}

/// The values of one measurement with its own tags. `None` is unknown, which is not zero.
#[derive(Clone, Debug)]
pub struct Group {
    /// The table that names the values.
    pub measurement: &'static Measurement,
    /// Values of the measurement's own tags, in the table's order.
    pub tags: Vec<String>,
    /// One value for each field of the table, in its order.
    pub values: Values,
}

impl PartialEq for Group {
    fn eq(&self, other: &Self) -> bool {
        self.same_series(other) && self.values == other.values
    }
}

impl Group {
    /// A group whose values are all unknown.
    pub fn unknown(measurement: &'static Measurement, tags: Vec<String>) -> Self {
        assert_eq!(
            measurement.tags.len(),
            tags.len(),
            "one value for each tag of {}",
            measurement.name
        );
        let is_listed = || tables::ALL.iter().any(|table| std::ptr::eq(*table, measurement));
        debug_assert!(is_listed(), "{} is not in tables::ALL", measurement.name);
        Self { measurement, tags, values: Values::unknown(measurement.fields.len()) }
    }

    /// Whether its values are those of `measurement`.
    pub fn is(&self, measurement: &Measurement) -> bool {
        ptr::eq(self.measurement, measurement)
    }

    /// Where the value of `field` is.
    ///
    /// # Panics
    /// With a handle of another measurement, which is a programming error.
    fn index<V>(&self, field: Handle<V>) -> usize {
        assert!(self.is(field.measurement()), "{} has no {field:?}", self.measurement.name);
        field.index()
    }

    /// Sets a number; `None`: it is unknown.
    pub fn set(&mut self, field: Handle<Number>, value: impl Into<Option<u64>>) {
        let index = self.index(field);
        let value = value.into().map(Value::Number);
        // What is shared stays so.
        if self.values[index] != value {
            self.values[index] = value;
        }
    }

    /// Sets a histogram; `None`: it is unknown.
    pub fn set_hist(&mut self, field: Handle<Histogram>, hist: impl Into<Option<Hist>>) {
        let index = self.index(field);
        self.values[index] = hist.into().map(Value::Histogram);
    }

    /// A number; `None` where it is unknown.
    pub fn number(&self, field: Handle<Number>) -> Option<u64> {
        match self.values[self.index(field)] {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        }
    }

    /// A histogram; `None` where it is unknown.
    pub fn hist(&self, field: Handle<Histogram>) -> Option<&Hist> {
        match &self.values[self.index(field)] {
            Some(Value::Histogram(hist)) => Some(hist),
            _ => None,
        }
    }

    /// Each field with its value.
    pub fn fields(&self) -> impl Iterator<Item = (&'static Field, &Option<Value>)> {
        self.measurement.fields.iter().zip(&self.values)
    }

    /// The measurement's own tags: key and value, in the table's order.
    pub fn own_tags(&self) -> impl Iterator<Item = (Name, String)> + '_ {
        let keys = self.measurement.tags.iter();
        keys.zip(&self.tags).map(|(key, value)| ((*key).into(), value.clone()))
    }

    /// Whether both are of the same measurement and tags.
    pub fn same_series(&self, other: &Self) -> bool {
        self.is(other.measurement) && self.tags == other.tags
    }

    /// Whether nothing happened: no gauge is known, and every counter and histogram is empty. A peak
    /// tells of the past as well and is no sign.
    pub fn is_idle(&self) -> bool {
        self.fields().all(|(field, value)| match (field.kind, value) {
            (_, None) | (Kind::Constant | Kind::Peak, _) => true,
            (_, Some(Value::Histogram(hist))) => hist.count() == 0,
            (Kind::Counter, Some(Value::Number(number))) => *number == 0,
            (_, Some(Value::Number(_))) => false,
        })
    }

    /// Whether peaks are all that is known: what the kernel told of something that is gone.
    pub fn has_peaks_alone(&self) -> bool {
        let mut known = self.fields().filter(|(_, value)| value.is_some()).peekable();
        known.peek().is_some() && known.all(|(field, _)| field.kind == Kind::Peak)
    }

    /// Forgets all but its peaks; gives whether anything is known still.
    pub fn keep_peaks_alone(&mut self) -> bool {
        for (field, value) in self.measurement.fields.iter().zip(&mut self.values) {
            *value = value.take().filter(|_| field.kind == Kind::Peak);
        }
        self.values.iter().any(Option::is_some)
    }

    /// Forgets what adds up over time; gives whether anything is known still.
    pub fn keep_states(&mut self) -> bool {
        for (field, value) in self.measurement.fields.iter().zip(&mut self.values) {
            *value =
                value.take().filter(|_| !matches!(field.kind, Kind::Counter | Kind::Histogram));
        }
        self.values.iter().any(Option::is_some)
    }

    /// What came between `older` and this one, both cumulative, of the same series.
    pub fn since(&self, older: &Self) -> Self {
        debug_assert!(self.same_series(older));
        let values = self.fields().zip(&older.values);
        Self {
            measurement: self.measurement,
            tags: self.tags.clone(),
            values: values.map(|((field, new), old)| less(field.kind, new, old)).collect(),
        }
    }

    /// Adds the values of `other`, of the same series and time: another CPU, cgroup, step or node.
    /// [`Group::follow`] adds a later interval.
    pub fn merge(&mut self, other: &Self) {
        debug_assert!(self.same_series(other));
        for (field, value, more) in self.beside(other) {
            add(field.kind, value, more);
        }
    }

    /// Appends the interval `later`: counters and histograms add, a state is the later one, and so is
    /// what was constant until it was changed (a cpuset). A memory limit that was removed is none.
    pub fn follow(&mut self, later: &Self) {
        debug_assert!(self.same_series(later));
        // The only state that somebody takes away while the job is there: else it would stay for ever.
        if self.is(&tables::MEMORY) && is_unlimited(later) {
            self.set(tables::Memory::limit_bytes, None::<u64>);
        }
        for (field, value, more) in self.beside(later) {
            let is_state = matches!(field.kind, Kind::Gauge | Kind::Constant);
            if is_state && more.is_some() {
                value.clone_from(more);
            } else {
                add(field.kind, value, more);
            }
        }
    }

    /// Each field with its value here, to be changed, and in `other`.
    fn beside<'a>(
        &'a mut self,
        other: &'a Self,
    ) -> impl Iterator<Item = (&'static Field, &'a mut Option<Value>, &'a Option<Value>)> {
        let fields = self.measurement.fields.iter();
        let values = self.values.iter_mut().zip(&other.values);
        fields.zip(values).map(|(field, (value, other))| (field, value, other))
    }
}

/// What came to a field of `kind` between `old` and `new`.
fn less(kind: Kind, new: &Option<Value>, old: &Option<Value>) -> Option<Value> {
    match (kind, new, old) {
        (Kind::Counter, Some(Value::Number(new)), Some(Value::Number(old))) => {
            Some(Value::Number(new.saturating_sub(*old)))
        }
        (_, Some(Value::Histogram(new)), Some(Value::Histogram(old))) => {
            Some(Value::Histogram(new.since(old)))
        }
        _ => new.clone(),
    }
}

/// Adds `more`, of the same time, to `value` of a field of `kind`.
fn add(kind: Kind, value: &mut Option<Value>, more: &Option<Value>) {
    match (kind, &mut *value, more) {
        (_, None, Some(_)) => value.clone_from(more),
        (Kind::Counter | Kind::Gauge, Some(Value::Number(a)), Some(Value::Number(b))) => {
            *a = a.saturating_add(*b);
        }
        (Kind::Peak, Some(Value::Number(a)), Some(Value::Number(b))) => *a = (*a).max(*b),
        (_, Some(Value::Histogram(a)), Some(Value::Histogram(b))) => a.merge(b),
        _ => {}
    }
}

/// Groups of `newer` less those of `older`; a series that `older` lacks began at zero.
pub fn since_all(newer: &[Group], older: &[Group]) -> Vec<Group> {
    let interval = |new: &Group| match older.iter().find(|old| old.same_series(new)) {
        Some(old) => new.since(old),
        None => new.clone(),
    };
    newer.iter().map(interval).collect()
}

/// Adds `more` to `groups`, series by series.
pub fn merge_all(groups: &mut Vec<Group>, more: &[Group]) {
    for group in more {
        match groups.iter_mut().find(|known| known.same_series(group)) {
            Some(known) => known.merge(group),
            None => groups.push(group.clone()),
        }
    }
}

/// Appends the later interval `more` to `groups`, series by series: like [`merge_all`], but a state is
/// not added, the newer one stands.
pub fn follow_all(groups: &mut Vec<Group>, more: &[Group]) {
    for group in more {
        match groups.iter_mut().find(|known| known.same_series(group)) {
            Some(known) => known.follow(group),
            None => groups.push(group.clone()),
        }
    }
}

/// A peak of `measurement` in `groups` is the largest so far, also where it was told before, by `so_far`, and what told it
/// is gone.
pub fn keep_peaks(groups: &mut [Group], so_far: &[Group], measurement: &Measurement) {
    for group in groups.iter_mut().filter(|group| group.is(measurement)) {
        let Some(before) = so_far.iter().find(|before| before.same_series(group)) else { continue };
        for (field, value, peak) in group.beside(before) {
            if field.kind == Kind::Peak && value.is_some() {
                add(field.kind, value, peak);
            }
        }
    }
}

/// The form in a recording and in the agent's state: names instead of positions. Written at each tick, so straight away.
impl Serialize for Group {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("measurement", self.measurement.name)?;
        if !self.tags.is_empty() {
            map.serialize_entry("tags", &self.tags)?;
        }
        map.serialize_entry("values", &Known(self))?;
        map.end()
    }
}

/// The known values by their names.
struct Known<'a>(&'a Group);

impl Serialize for Known<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known =
            self.0.fields().filter_map(|(field, value)| Some((field.name, value.as_ref()?)));
        serializer.collect_map(known)
    }
}

/// That form, read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    measurement: String,
    #[serde(default)]
    tags: Vec<String>,
    values: BTreeMap<String, Value>,
}

impl<'de> Deserialize<'de> for Group {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let named = Named::deserialize(deserializer)?;
        let measurement =
            tables::ALL.iter().find(|table| table.name == named.measurement).ok_or_else(|| {
                D::Error::custom(format!("unknown measurement {}", named.measurement))
            })?;
        let mut tags = named.tags;
        if !(tables::oldest_tags(measurement)..=measurement.tags.len()).contains(&tags.len()) {
            return Err(D::Error::custom(format!("{} wants other tags", named.measurement)));
        }
        // An older recording lacks those that came later.
        tags.resize(measurement.tags.len(), String::new());
        let mut group = Self::unknown(measurement, tags);
        for (name, value) in named.values {
            let index = measurement.fields.iter().position(|field| field.name == name);
            let index = index.ok_or_else(|| D::Error::custom(format!("unknown field {name}")))?;
            let is_hist = measurement.fields[index].kind == Kind::Histogram;
            if is_hist != matches!(value, Value::Histogram(_)) {
                return Err(D::Error::custom(format!("field {name} is of another kind")));
            }
            group.values[index] = Some(value);
        }
        Ok(group)
    }
}
