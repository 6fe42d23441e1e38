//! What is on the screen: which jobs, in which order, which of them is chosen. Pure: keys and answers in.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::asking::Answer;
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
            error: None,
            is_over: false,
            unicode,
        }
    }

    /// Whether the user wants no more.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The job that is wished for in detail.
    pub fn wish(&self) -> Option<Key> {
        self.detail.as_ref().map(|detail| detail.key.clone())
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

    /// A key; gives whether another job is wished for.
    pub fn press(&mut self, key: KeyEvent) -> bool {
        let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match (key.code, &mut self.detail) {
            (KeyCode::Char('q'), _) | (KeyCode::Char('c'), _)
                if key.code == KeyCode::Char('q') || is_ctrl =>
            {
                self.is_over = true;
            }
            (KeyCode::Esc | KeyCode::Backspace | KeyCode::Left, Some(_)) => {
                self.detail = None;
                return true;
            }
            (KeyCode::Enter | KeyCode::Right, None) => {
                let key = self.chosen.clone().or_else(|| self.order().first().cloned());
                self.detail = key.map(|key| Detail { key, whole: None, above: 0 });
                return self.detail.is_some();
            }
            (code, Some(detail)) => {
                detail.above = moved(detail.above, code).unwrap_or(detail.above)
            }
            (KeyCode::Char(letter), None) if SORTS.iter().any(|(key, ..)| *key == letter) => {
                let sort = SORTS.iter().find(|(key, ..)| *key == letter);
                self.sort = sort.map_or(self.sort, |(_, sort, _)| *sort);
            }
            (code, None) => self.choose(code),
        }
        false
    }

    fn order(&self) -> Vec<Key> {
        self.jobs.sorted(self.sort).iter().map(|now| key(&now.row)).collect()
    }

    fn choose(&mut self, code: KeyCode) {
        let order = self.order();
        let at = self.chosen.as_ref().and_then(|chosen| order.iter().position(|key| key == chosen));
        if let Some(to) = moved(at.unwrap_or(0), code) {
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
        let is_gone = !self.order().contains(&detail.key);
        let style = Style { width: style.width.clamp(MIN_WIDTH, MAX_WIDTH), ..*style };
        let mut lines = Vec::new();
        if let Some(whole) = &detail.whole {
            let blocks = blocks(&Report::of(whole, self.unicode), &style);
            for block in blocks.into_iter().filter(|block| !block.is_empty()) {
                if !lines.is_empty() {
                    lines.push(Line::new());
                }
                lines.extend(block);
            }
        }
        detail.above = detail.above.min(lines.len().saturating_sub(rows));
        let more = match lines.len().saturating_sub(detail.above + rows) {
            0 => String::new(),
            more => format!(", {more} lines further down"),
        };
        let title = match (is_gone, &detail.whole) {
            (true, _) => format!("job {} has ended{more}", detail.key.1),
            (false, None) => format!("job {}: asking", detail.key.1),
            (false, Some(_)) => format!("job {}{more}", detail.key.1),
        };
        Window {
            title,
            error: self.error.clone(),
            lines: lines.into_iter().skip(detail.above).take(rows).collect(),
            chosen: None,
            keys: "q quit  Esc back  up, down, PgUp, PgDn scroll".to_owned(),
        }
    }
}

/// Where a key leads from a place; `None` where it leads nowhere.
fn moved(at: usize, code: KeyCode) -> Option<usize> {
    const PAGE: usize = 8;
    match code {
        KeyCode::Up | KeyCode::Char('k') => Some(at.saturating_sub(1)),
        KeyCode::Down | KeyCode::Char('j') => Some(at + 1),
        KeyCode::PageUp => Some(at.saturating_sub(PAGE)),
        KeyCode::PageDown | KeyCode::Char(' ') => Some(at + PAGE),
        KeyCode::Home => Some(0),
        KeyCode::End => Some(usize::MAX / 2),
        _ => None,
    }
}
