//! The vocabulary in which a dashboard is described: what is asked of which measurement, and how it is
//! shown. Knows no query language and no JSON.

/// One dashboard.
pub struct Dashboard {
    /// For ever the same: links and provisioning go by it.
    pub uid: &'static str,
    /// Its name, in each edition.
    pub title: &'static str,
    /// For whom it is, in a sentence or two.
    pub help: &'static str,
    /// What its readers choose.
    pub variables: &'static [Variable],
    /// Tags that its choices narrow, in every query.
    pub scope: &'static [Scope],
    /// The time range it opens with, `now-6h`.
    pub from: &'static str,
    /// Its panels, from the top.
    pub rows: Vec<Row>,
}

/// A choice at a dashboard's top, besides the data source and the agent's interval.
#[derive(Clone, Copy)]
pub struct Variable {
    /// The tag whose values are offered, and its own name.
    pub tag: &'static str,
    /// What stands before it.
    pub label: &'static str,
    /// The measurement and field that a value must have in the time range.
    pub of: (&'static str, &'static str),
    /// The scopes by which the values offered are narrowed.
    pub within: &'static [Scope],
    /// Several values at once, all of them at first.
    pub many: bool,
}

/// A tag and how the choice of it narrows a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The one value that was chosen.
    One(&'static str),
    /// Any of the values that were chosen.
    AnyOf(&'static str),
    /// All that is not this value.
    Not(&'static str, &'static str),
}

impl Scope {
    /// The tag it narrows.
    pub fn tag(&self) -> &'static str {
        match self {
            Self::One(tag) | Self::AnyOf(tag) | Self::Not(tag, _) => tag,
        }
    }
}

/// Panels under one heading.
pub struct Row {
    /// The heading.
    pub title: &'static str,
    /// Repeated for each chosen value of this variable.
    pub each: Option<&'static str>,
    /// From the left; a panel that no longer fits begins a new line.
    pub panels: Vec<Panel>,
}

/// One panel.
#[derive(Clone)]
pub struct Panel {
    /// A few words.
    pub title: &'static str,
    /// What it shows and what to make of it, for somebody who sees it for the first time.
    pub help: &'static str,
    /// How it is drawn.
    pub look: Look,
    /// Grafana's name of the values' unit.
    pub unit: &'static str,
    /// Columns of 24.
    pub width: u32,
    /// Rows of some 30 pixels.
    pub height: u32,
    /// From which values on which colour; below the first all is well.
    pub limits: &'static [(f64, &'static str)],
    /// What it asks.
    pub asks: Vec<Ask>,
    /// What Grafana does with the answers, in turn.
    pub steps: Vec<Step>,
    /// Units of columns that have another, by their heading.
    pub units: &'static [(&'static str, &'static str)],
}

/// How a panel is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// Lines over time.
    Lines,
    /// Areas over time, one upon the other.
    Stack,
    /// Numbers: of values over time their mean.
    Numbers,
    /// Numbers: the last.
    Last,
    /// Horizontal bars.
    Bars,
    /// Vertical bars, one for each row of a table.
    Columns,
    /// Buckets over time, coloured by their counts.
    Heatmap,
    /// Rows.
    Table,
}

/// One question; each becomes a query in the language of the edition.
#[derive(Clone)]
pub struct Ask {
    /// Name of the answer; `{tag}` stands for a tag's value.
    pub legend: &'static str,
    /// What is asked.
    pub what: What,
}

/// What a question is about.
#[derive(Clone)]
pub enum What {
    /// A value in each step of time, by some tags.
    OverTime(Term, &'static [&'static str]),
    /// A value in each hour, for the whole range, by some tags.
    Hourly(Term, &'static [&'static str]),
    /// One value for the whole range, by some tags.
    Whole(Term, &'static [&'static str]),
    /// Counts of `job_hist`'s buckets over time, by their bound.
    Buckets(&'static str),
    /// Facts of `job_info`.
    Facts(Facts),
}

/// A value made of a measurement's fields.
#[derive(Clone, Copy)]
pub struct Term {
    /// The measurement.
    pub of: &'static str,
    /// What is made of its fields.
    pub value: Value,
    /// Narrowed to these values of tags.
    pub only: &'static [(&'static str, &'static str)],
    /// The value is multiplied by this.
    pub times: f64,
}

/// How points become one value. Fields of histograms go by their parts (`x_sum`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// A counter by time: of nanoseconds how many at once, else how many a second.
    Rate(&'static str),
    /// A counter's sum.
    Sum(&'static str),
    /// A state: its mean over time, added over all series.
    Level(&'static str),
    /// The largest of all.
    Largest(&'static str),
    /// The sum of one field by the sum of another.
    Ratio(&'static str, &'static str),
    /// The sum of the products of two fields of a point: what is held times how long.
    Product(&'static str, &'static str),
    /// A state weighted by how long it lasted in the step: what is held, of jobs that come and go.
    Weighted(&'static str),
    /// How many values a tag has among the series that have the field.
    Different(&'static str, &'static str),
}

/// Rows of `job_info`.
#[derive(Clone)]
pub struct Facts {
    /// Field, heading, factor; the factor of a text is 1.
    pub fields: &'static [(&'static str, &'static str, f64)],
    /// Rows with totals only: those of jobs that have ended.
    pub ended: bool,
    /// So many, the newest first.
    pub newest: Option<u32>,
    /// Computed columns: heading and an expression of fields, `a * (b - c)`.
    pub computed: &'static [(&'static str, &'static str)],
}

/// What Grafana does with the answers.
#[derive(Clone)]
pub enum Step {
    /// Join the answers' rows that agree in this column; a row that one answer lacks is left out, for
    /// nothing could be computed of it.
    Join(&'static str),
    /// Rows that agree in these columns become one, with the named columns added up.
    Group {
        /// Columns that must agree.
        by: &'static [&'static str],
        /// Columns to compute.
        of: &'static [&'static str],
        /// `sum` or `mean`.
        how: &'static str,
    },
    /// A column from two: heading, left, operator, right.
    Compute(&'static str, &'static str, &'static str, &'static str),
    /// The time becomes a text: its hour or weekday, by a format of moment.js.
    Clock(&'static str),
    /// Columns to leave out, and new names.
    Arrange {
        /// Left out.
        without: &'static [&'static str],
        /// Old name, new name.
        names: &'static [(&'static str, &'static str)],
    },
    /// Rows by this column, the largest first unless `up`.
    Sort {
        /// The column.
        by: &'static str,
        /// The smallest first.
        up: bool,
    },
    /// So many rows.
    First(u32),
}

impl Value {
    /// The fields it is made of.
    pub fn fields(self) -> Vec<&'static str> {
        match self {
            Self::Rate(a)
            | Self::Sum(a)
            | Self::Level(a)
            | Self::Largest(a)
            | Self::Different(a, _) => vec![a],
            Self::Weighted(a) => vec![a, "interval_ns"],
            Self::Ratio(a, b) | Self::Product(a, b) => vec![a, b],
        }
    }
}
