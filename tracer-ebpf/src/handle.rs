//! Handles, by which code names a field, and the macro that makes them with their table.
//!
//! A handle knows its measurement and whether the field is a number or a histogram: a misspelt name or a
//! value of the wrong sort does not build.

use core::{fmt, marker::PhantomData, ptr};

use crate::table::{Field, Measurement};

/// Of a [`Handle`]: the field is a number, of any kind but histogram.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Number {}

/// Of a [`Handle`]: the field is a histogram.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Histogram {}

/// A field of a measurement whose values are `V`s: [`Number`] or [`Histogram`].
#[derive(Clone, Copy)]
pub struct Handle<V> {
    measurement: &'static Measurement,
    index: usize,
    value: PhantomData<V>,
}

impl<V> Handle<V> {
    /// Field `index` of `measurement`, for `measurement!` alone: it knows what the field's values are.
    #[doc(hidden)]
    pub const fn new(measurement: &'static Measurement, index: usize) -> Self {
        Self { measurement, index, value: PhantomData }
    }

    /// The measurement that it is of.
    pub const fn measurement(&self) -> &'static Measurement {
        self.measurement
    }

    /// Its place among the measurement's fields.
    pub const fn index(&self) -> usize {
        self.index
    }

    /// Its row.
    pub const fn field(&self) -> &'static Field {
        &self.measurement.fields[self.index]
    }
}

impl<V> PartialEq for Handle<V> {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.measurement, other.measurement) && self.index == other.index
    }
}

impl<V> Eq for Handle<V> {}

impl<V> fmt::Debug for Handle<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.measurement.name, self.measurement.fields[self.index].name)
    }
}

/// Writes the table of a measurement, a static, and a type whose constants are the handles of its fields,
/// called as the fields are: `Sched::on_cpu_ns`. A row is kind, name and unit, where the value comes from
/// (left out where the user side reads or computes it), and the sentence for docs/METRICS.md.
#[macro_export]
macro_rules! measurement {
    (
        $(#[$doc:meta])*
        $table:ident, $handles:ident = $name:literal, key $key:literal, tags $tags:expr,
        $help:literal;

        $($kind:ident $field:ident: $unit:ident $(in $place:expr)?, $about:literal;)*
    ) => {
        $(#[$doc])*
        pub static $table: $crate::table::Measurement = $crate::table::Measurement {
            name: $name,
            key: $key,
            tags: &$tags,
            help: $help,
            fields: &[$($crate::table::Field {
                name: stringify!($field),
                kind: $crate::measurement!(@kind $kind),
                unit: $crate::table::Unit::$unit,
                place: $crate::measurement!(@place $($place)?),
                help: $about,
            }),*],
        };

        #[doc = concat!("The fields of `", $name, "`, as code names them.")]
        #[derive(Clone, Copy, Debug)]
        pub enum $handles {}

        const _: () = {
            #[allow(non_camel_case_types, reason = "called as the fields are")]
            enum Index { $($field),* }

            #[allow(non_upper_case_globals, reason = "called as the fields are")]
            impl $handles {
                $(
                    #[doc = $about]
                    pub const $field: $crate::handle::Handle<$crate::measurement!(@value $kind)> =
                        $crate::handle::Handle::new(&$table, Index::$field as usize);
                )*
            }
        };
    };
    (@kind counter) => { $crate::table::Kind::Counter };
    (@kind gauge) => { $crate::table::Kind::Gauge };
    (@kind peak) => { $crate::table::Kind::Peak };
    (@kind constant) => { $crate::table::Kind::Constant };
    (@kind histogram) => { $crate::table::Kind::Histogram };
    (@value histogram) => { $crate::handle::Histogram };
    (@value $number:ident) => { $crate::handle::Number };
    (@place $place:expr) => { $place };
    (@place) => { $crate::table::Place::Agent };
}
