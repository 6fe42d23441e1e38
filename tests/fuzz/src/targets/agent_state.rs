//! What an agent before this one left: its state, and behind an empty line its journal. It is read or
//! refused; what was read is written and read again the same; of the journal, torn lines alone are lost.

use std::fs;

use jobtrace::{
    base::identity::boot_id,
    commands::agent::state::{AgentState, JournalEntry, Keeper},
};
use serde_json::Value;
use tempfile::TempDir;

use crate::split::paragraph;

thread_local! {
    /// In memory where the node has it.
    static FOLDER: TempDir = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a folder");
}

/// Stands in a corpus for the running boot's id.
const BOOT: &str = "THIS-BOOT";

pub fn run(data: &[u8]) {
    let (state, journal) = paragraph(data);
    for line in journal.split(|byte| *byte == b'\n') {
        if let Ok(entry) = serde_json::from_slice::<JournalEntry>(line) {
            same_again(&entry, |text| serde_json::from_slice::<JournalEntry>(text).ok());
        }
    }
    let Ok(known) = serde_json::from_slice::<AgentState>(state) else { return };
    same_again(&known, |text| serde_json::from_slice::<AgentState>(text).ok());
    let lines = journal.split(|byte| *byte == b'\n');
    let whole = lines.filter(|line| serde_json::from_slice::<JournalEntry>(line).is_ok()).count();
    FOLDER.with(|folder| through_files(folder, state, journal, whole));
}

/// Written and read again, it is what it was.
fn same_again<T: serde::Serialize>(value: &T, read: impl Fn(&[u8]) -> Option<T>) {
    let text = serde_json::to_vec(value).expect("what was read can be written");
    let again = read(&text).expect("what was written can be read");
    let again = serde_json::to_value(&again).expect("JSON");
    assert_eq!(again, serde_json::from_slice::<Value>(&text).expect("JSON"));
}

/// As the next agent finds it.
fn through_files(folder: &TempDir, state: &[u8], journal: &[u8], whole: usize) {
    let text = String::from_utf8_lossy(state).replace(BOOT, &boot_id());
    let Ok(Value::Object(fields)) = serde_json::from_str(&text) else { return };
    let Some(number) = fields.get("journal").and_then(Value::as_u64) else { return };
    let mut keeper = Keeper::new(folder.path());
    fs::write(folder.path().join("state.json"), &text).expect("a file");
    fs::write(folder.path().join(format!("journal-{number}")), journal).expect("a file");
    if let Ok(Some((state, entries))) = keeper.read() {
        assert_eq!(entries.len(), whole, "only what is torn is lost");
        if let Some(entry) = entries.first() {
            keeper.note(entry).expect("a journal");
        }
        if number < u64::MAX {
            keeper.commit(state).expect("a state");
            assert!(Keeper::new(folder.path()).read().expect("it is there").is_some());
        }
    }
    keeper.clear().expect("files of ours");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A state that is refused tests little: after a change of its form, `real_agent_state.sh` makes them anew.
    #[test]
    fn the_real_states_of_the_corpus_are_read() {
        for name in ["real", "other-boot"] {
            let input = fs::read(crate::corpus("agent_state").join(name)).expect("a file");
            serde_json::from_slice::<AgentState>(paragraph(&input).0).expect(name);
        }
    }
}
