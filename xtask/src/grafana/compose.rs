//! Short ways to describe panels and questions.

use super::spec::{Ask, Look, Panel, Step, Term, Value, What};

/// A value over time.
pub const fn over_time(legend: &'static str, term: Term, by: &'static [&'static str]) -> Ask {
    Ask { legend, what: What::OverTime(term, by) }
}

/// One value for the whole range.
pub const fn whole(legend: &'static str, term: Term, by: &'static [&'static str]) -> Ask {
    Ask { legend, what: What::Whole(term, by) }
}

/// A value of all series of a measurement.
pub const fn term(of: &'static str, value: Value) -> Term {
    Term { of, value, only: &[], times: 1.0 }
}

impl Term {
    /// The same, multiplied.
    pub const fn times(self, times: f64) -> Self {
        Self { times, ..self }
    }

    /// The same, of some series only.
    pub const fn only(self, only: &'static [(&'static str, &'static str)]) -> Self {
        Self { only, ..self }
    }
}

impl Panel {
    /// One with a width of 12, a height of 8 and nothing asked.
    pub fn new(look: Look, unit: &'static str, title: &'static str, help: &'static str) -> Self {
        let (width, height) = (12, 8);
        let (limits, asks, steps): (_, _, _) = (&[][..], Vec::new(), Vec::new());
        Self { title, help, look, unit, width, height, limits, asks, steps, units: &[] }
    }

    /// The same, of another size.
    pub fn size(self, width: u32, height: u32) -> Self {
        Self { width, height, ..self }
    }

    /// The same, asking for a value over time.
    pub fn line(self, legend: &'static str, term: Term, by: &'static [&'static str]) -> Self {
        self.ask(over_time(legend, term, by))
    }

    /// The same with one more question.
    pub fn ask(mut self, ask: Ask) -> Self {
        self.asks.push(ask);
        self
    }

    /// The same with limits.
    pub fn limits(self, limits: &'static [(f64, &'static str)]) -> Self {
        Self { limits, ..self }
    }

    /// The same with one more step.
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// The same as half a page of a joined table: the 25 rows with the most of a column, which is the first.
    pub fn ranked(self, by: &'static str) -> Self {
        self.step(Step::Arrange { without: &["Time", "Time 1", "Time 2"], names: &[] })
            .step(Step::Sort { by, up: false })
            .step(Step::First(25))
            .size(12, 10)
    }

    /// The same with units of single columns.
    pub fn units(self, units: &'static [(&'static str, &'static str)]) -> Self {
        Self { units, ..self }
    }
}
