//! The columns of a timeline that are closed, in two bytes a value. Rounded are the running sums, so what one column
//! is short of the next one has: sums stay sums, to the unit. Peaks are rounded up.
//!
//! All columns of a series are multiples of its step, a power of ten (which is short in JSON, too). A step grows with
//! the series' largest column and is a multiple of the one before: rounded twice is rounded once.

use std::array::from_fn;

use serde::{Deserialize, Serialize};
use tracer_ebpf::table::Kind;

use super::{
    packed::Packed,
    series::{SERIES, WIDTH},
    timeline::Column,
};

/// Steps in the largest column at most. With what rounding left over, it still takes two bytes: 14 bits.
const MOST_STEPS: u64 = 16_000;

/// A column differs from what came in its time by less than the series' largest column divided by this.
pub const FINENESS: u64 = 1_500;

/// The least power of ten of which a column of `most` has no more than [`MOST_STEPS`].
fn step_for(most: u64) -> u64 {
    let mut step = 1;
    while most / step > MOST_STEPS {
        step *= 10;
    }
    step
}

/// Closed columns, from the first on.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rounded {
    /// How many steps each value has.
    rows: Packed<WIDTH>,
    /// Of each series.
    steps: [u64; WIDTH],
    /// Of each series that is a sum: what is in no column yet, less than a step.
    rest: [u64; WIDTH],
}

impl Default for Rounded {
    fn default() -> Self {
        Self { rows: Packed::default(), steps: [1; WIDTH], rest: [0; WIDTH] }
    }
}

impl Rounded {
    /// `columns`, exactly.
    pub fn exactly(columns: &[Column]) -> Self {
        let step = |at: usize| {
            let known = || columns.iter().filter_map(move |column| column[at]);
            let mut step = step_for(known().max().unwrap_or(0));
            while known().any(|value| !value.is_multiple_of(step)) {
                step /= 10;
            }
            step
        };
        let mut exact = Self { steps: from_fn(step), ..Self::default() };
        columns.iter().for_each(|column| exact.append(column));
        exact
    }

    /// The columns but for [`Self::rest`].
    pub fn iter(&self) -> impl Iterator<Item = Column> + '_ {
        let value = |row: &Column, at: usize| Some(row[at]?.saturating_mul(self.steps[at]));
        self.rows.iter().map(move |row| from_fn(|at| value(&row, at)))
    }

    /// What belongs to each series besides: the last column of which it is known tells it.
    pub fn rest(&self) -> &[u64; WIDTH] {
        &self.rest
    }

    /// How many columns there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Bytes of memory that the columns take.
    pub fn memory_bytes(&self) -> usize {
        self.rows.memory_bytes()
    }

    /// Closes a column.
    pub fn push(&mut self, column: &Column) {
        let due = |at: usize| column[at].map_or(0, |value| value.saturating_add(self.rest[at]));
        let steps = from_fn(|at| step_for(due(at)).max(self.steps[at]));
        self.coarsen(steps);
        self.append(column);
    }

    /// Rounds the columns so that each takes two bytes.
    pub fn round(&mut self) {
        let mut most = [0; WIDTH];
        for column in self.iter() {
            most = from_fn(|at| column[at].unwrap_or(0).max(most[at]));
        }
        self.coarsen(from_fn(|at| step_for(most[at]).max(self.steps[at])));
    }

    /// Rounds to `steps`, which are multiples of its own.
    fn coarsen(&mut self, steps: [u64; WIDTH]) {
        if steps == self.steps {
            return;
        }
        let fine = std::mem::replace(self, Self { steps, ..Self::default() });
        fine.iter().for_each(|column| self.append(&column));
        self.rest = from_fn(|at| self.rest[at] + fine.rest[at]);
    }

    fn append(&mut self, column: &Column) {
        let mut row = Column::default();
        for (at, series) in SERIES.iter().enumerate() {
            let (step, rest) = (self.steps[at], &mut self.rest[at]);
            row[at] = column[at].map(|value| match series.kind {
                Kind::Peak => value.div_ceil(step),
                _ => {
                    let due = value.saturating_add(*rest);
                    *rest = due % step;
                    due / step
                }
            });
        }
        self.rows.push(&row);
    }

    /// Whether a program can have written it.
    pub fn is_sound(&self) -> bool {
        self.rest.iter().zip(&self.steps).all(|(rest, step)| rest < step)
    }
}
