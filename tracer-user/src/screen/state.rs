//! What is on the screen: which jobs, in which order, which of them is chosen. Pure: keys and answers in.

use anyhow::Result;

use super::keys::Press;
use crate::{
    record::select::Run,
    report::{
        Report, Whole, blocks,
        now::{Jobs, Key, Now, Sort, key, lines},
    },
    view::{MAX_WIDTH, MIN_WIDTH, Style, line::Line},
};

/// The keys that sort.
const SORTS: [(char, Sort, &str); 8] = [
    ('c', Sort::Cpu, "cpu"),
    ('w', Sort::Waiting, "waiting"),
    ('b', Sort::Blocked, "blocked"),
    ('m', Sort::Memory, "memory"),
    ('d', Sort::Disk, "disk"),
    ('n', Sort::Net, "net"),
    ('g', Sort::Gpu, "gpu"),
    ('t', Sort::Time, "time"),
];

/// What was found: the jobs, and of the one that is wished for all that is known.
pub struct Answer {
    /// The jobs that run.
    pub runs: Result<Vec<Run>>,
    /// The one that was wished for, if it runs.
    pub whole: Option<(Key, Whole)>,
}

/// What a key asks for outside.
#[derive(Debug, PartialEq, Eq)]
pub enum Act {
    /// From now on this job in detail.
    Wish(Option<Key>),
    /// This signal to the command.
    Signal(i32),
}

/// A job in detail.
struct Detail {
    key: Key,
    whole: Option<Whole>,
    /// Lines above the window.
    above: usize,
}

/// All of it.
pub struct State {
    jobs: Jobs,
    sort: Sort,
    chosen: Option<Key>,
    /// Rows above the window.
    above: usize,
    detail: Option<Detail>,
    /// Whether the one job is a command that runs on this terminal.
    is_command: bool,
    error: Option<String>,
    is_over: bool,
    unicode: bool,
}

/// A window of lines, and which of them is chosen.
pub struct Window {
    /// What is above all others.
    pub title: String,
    /// Something that went wrong.
    pub error: Option<String>,
    /// The lines that fit; the first is of heads in a list.
    pub lines: Vec<Line>,
    /// Which of them is chosen.
    pub chosen: Option<usize>,
    /// The keys.
    pub keys: String,
}

impl State {
    /// Of the first list.
    pub fn new(sort: Sort, runs: &[Run], unicode: bool) -> Self {
        let mut jobs = Jobs::default();
        jobs.take(runs);
        Self {
            jobs,
            sort,
            chosen: None,
            above: 0,
            detail: None,
            is_command: false,
            error: None,
            is_over: false,
            unicode,
        }
    }

    /// Of the command that `first` tells of in detail, and of nothing else.
    pub fn of_command(first: Answer, unicode: bool) -> Self {
        let mut state = Self::new(Sort::default(), &[], unicode);
        let key = first.whole.as_ref().map(|(key, _)| key.clone());
        state.detail = key.map(|key| Detail { key, whole: None, above: 0 });
        state.is_command = true;
        state.take(first);
        state
    }

    /// Whether the user wants no more.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes what was found.
    pub fn take(&mut self, answer: Answer) {
        match answer.runs {
            Ok(runs) => {
                self.jobs.take(&runs);
                self.error = None;
            }
            Err(error) => self.error = Some(format!("{error:#}")),
        }
        if let (Some(detail), Some((key, whole))) = (&mut self.detail, answer.whole)
            && detail.key == key
        {
            detail.whole = Some(whole);
        }
    }

    /// A key; gives what it asks for outside.
    pub fn press(&mut self, press: Press) -> Option<Act> {
        match (press, &mut self.detail) {
            (Press::Ctrl('c'), _) if self.is_command => return Some(Act::Signal(libc::SIGINT)),
            (Press::Ctrl('\\'), _) if self.is_command => return Some(Act::Signal(libc::SIGQUIT)),
            (Press::Char('q') | Press::Ctrl('c'), _) => self.is_over = true,
            (Press::Esc | Press::Backspace | Press::Left, Some(_)) if !self.is_command => {
                self.detail = None;
                return Some(Act::Wish(None));
            }
            (Press::Enter | Press::Right, None) => {
                let key = self.chosen.clone().or_else(|| self.order().first().cloned())?;
                self.detail = Some(Detail { key: key.clone(), whole: None, above: 0 });
                return Some(Act::Wish(Some(key)));
            }
            (press, Some(detail)) => {
                detail.above = moved(detail.above, press).unwrap_or(detail.above)
            }
            (Press::Char(letter), None) if SORTS.iter().any(|(key, ..)| *key == letter) => {
                let sort = SORTS.iter().find(|(key, ..)| *key == letter);
                self.sort = sort.map_or(self.sort, |(_, sort, _)| *sort);
            }
            (press, None) => self.choose(press),
        }
        None
    }

    fn order(&self) -> Vec<Key> {
        self.jobs.sorted(self.sort).iter().map(|now| key(&now.row)).collect()
    }

    fn choose(&mut self, press: Press) {
        let order = self.order();
        let at = self.chosen.as_ref().and_then(|chosen| order.iter().position(|key| key == chosen));
        if let Some(to) = moved(at.unwrap_or(0), press) {
            self.chosen = order.get(to.min(order.len().saturating_sub(1))).cloned();
        }
    }

    /// What there is to see in so many columns and rows.
    pub fn window(&mut self, width: usize, rows: usize) -> Window {
        let style = Style { width, color: true, unicode: self.unicode };
        let rows = rows.saturating_sub(2 + usize::from(self.error.is_some()));
        match self.detail.take() {
            Some(mut detail) => {
                let window = self.detail_window(&mut detail, &style, rows);
                self.detail = Some(detail);
                window
            }
            None => self.list_window(&style, rows),
        }
    }

    fn list_window(&mut self, style: &Style, rows: usize) -> Window {
        let jobs = self.jobs.sorted(self.sort);
        let chosen = self.chosen.clone().or_else(|| jobs.first().map(|now| key(&now.row)));
        let at = jobs.iter().position(|now| Some(key(&now.row)) == chosen).unwrap_or(0);
        let room = rows.saturating_sub(1).max(1);
        let last = jobs.len().saturating_sub(room);
        self.above = self.above.min(last).clamp((at + 1).saturating_sub(room), at);
        let shown: Vec<&Now> = jobs.iter().skip(self.above).take(room).copied().collect();
        let name = SORTS.iter().find(|(_, sort, _)| *sort == self.sort).map_or("", |sort| sort.2);
        let more = match jobs.len().saturating_sub(self.above + shown.len()) {
            0 => String::new(),
            more => format!(", {more} further down"),
        };
        let title = match jobs.len() {
            0 => "no job is running".to_owned(),
            1 => "1 job runs".to_owned(),
            count => format!("{count} jobs run, by {name}{more}"),
        };
        let sorts: Vec<_> = SORTS.iter().map(|(key, _, name)| format!("{key} {name}")).collect();
        Window {
            title,
            error: self.error.clone(),
            chosen: (!jobs.is_empty()).then_some(at - self.above + 1),
            lines: lines(&shown, style),
            keys: format!("q quit  Enter details  by: {}", sorts.join(" ")),
        }
    }

    fn detail_window(&self, detail: &mut Detail, style: &Style, rows: usize) -> Window {
        let now = self.jobs.sorted(self.sort).into_iter().find(|now| key(&now.row) == detail.key);
        let style = Style { width: style.width.clamp(MIN_WIDTH, MAX_WIDTH), ..*style };
        // Nothing is known before the first reading.
        let counted = detail.whole.as_ref().filter(|whole| whole.record.totals.elapsed_ns > 0);
        // What a command does now is nowhere else.
        let does = now.filter(|_| self.is_command).zip(counted);
        let does = does.map_or(Vec::new(), |(now, _)| lines(&[now], &style));
        let report = counted.map(|whole| Report::of(whole, self.unicode));
        let report = report.into_iter().flat_map(|report| blocks(&report, &style));
        let mut lines = Vec::new();
        for block in [does].into_iter().chain(report).filter(|block| !block.is_empty()) {
            if !lines.is_empty() {
                lines.push(Line::new());
            }
            lines.extend(block);
        }
        detail.above = detail.above.min(lines.len().saturating_sub(rows));
        let more = match lines.len().saturating_sub(detail.above + rows) {
            0 => String::new(),
            more => format!(", {more} lines further down"),
        };
        let job = &detail.key.1;
        let title = match (now, &detail.whole) {
            _ if self.is_command && counted.is_none() => {
                "the command runs, its first reading is to come".to_owned()
            }
            _ if self.is_command => format!("the command runs{more}"),
            (None, _) => format!("job {job} has ended{more}"),
            (_, None) => format!("job {job}: asking"),
            (_, Some(_)) => format!("job {job}{more}"),
        };
        let keys = match self.is_command {
            true => "q close  Ctrl-C interrupt the command  up, down, PgUp, PgDn scroll",
            false => "q quit  Esc back  up, down, PgUp, PgDn scroll",
        };
        Window {
            title,
            error: self.error.clone(),
            lines: lines.into_iter().skip(detail.above).take(rows).collect(),
            chosen: None,
            keys: keys.to_owned(),
        }
    }
}

/// Where a key leads from a place; `None` where it leads nowhere.
fn moved(at: usize, press: Press) -> Option<usize> {
    const PAGE: usize = 8;
    match press {
        Press::Up | Press::Char('k') => Some(at.saturating_sub(1)),
        Press::Down | Press::Char('j') => Some(at + 1),
        Press::PageUp => Some(at.saturating_sub(PAGE)),
        Press::PageDown | Press::Char(' ') => Some(at + PAGE),
        Press::Home => Some(0),
        Press::End => Some(usize::MAX / 2),
        _ => None,
    }
}
