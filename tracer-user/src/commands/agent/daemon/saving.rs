//! The records of jobs between the node, which makes them, and the threads that save them and are asked for them.

use std::future::pending;

use super::Agent;
use crate::{
    base::clock::monotonic_ns,
    commands::agent::{
        query::{Ask, Queries},
        records::Records,
    },
};

/// Waits until there is room for a record that waits; for ever where none does.
pub(super) async fn room(records: Option<&Records>) {
    match records.filter(|records| records.some_wait()) {
        Some(records) => records.room().await,
        None => pending().await,
    }
}

/// The next question about running jobs; for ever none where nobody can ask.
pub(super) async fn next_ask(queries: Option<&mut Queries>) -> Ask {
    match queries {
        Some(queries) => queries.next().await,
        None => pending().await,
    }
}

impl Agent {
    /// An interval has ended: has the records saved that are due.
    pub(super) fn save_records(&mut self) {
        self.queries.iter().for_each(Queries::tick);
        if let Some(records) = &mut self.records {
            let (due, dropped) = self.node.due_records(self.output.origin(), false);
            records.tick(due, dropped, self.is_committed);
            records.tell(&self.log);
            self.hand_over();
        }
    }

    /// Hands over as many records as there is room for.
    pub(super) fn hand_over(&mut self) {
        let (node, origin) = (&mut self.node, self.output.origin());
        if let Some(records) = &mut self.records {
            records.hand_over(|due| node.hand_over(origin, due));
        }
    }

    /// Writes what the last tick left waiting, and then the records of what still runs. Gives whether all is written.
    pub(super) fn finish(&mut self) -> bool {
        let written =
            self.committed(|output, commit, log| output.finish(monotonic_ns(), commit, log));
        let (node, origin) = (&mut self.node, self.output.origin());
        let saved = self.records.take().is_none_or(|mut records| {
            let (due, dropped) = node.due_records(origin, true);
            records.tick(due, dropped, self.is_committed);
            records.finish(self.config.pin, |due| node.hand_over(origin, due), &self.log)
        });
        written && saved
    }
}
