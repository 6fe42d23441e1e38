//! The processes that hold a render node, found in /proc. Looking at every descriptor of every process each
//! second is dear: those that hold one, and young ones, are looked at each time, of the others an eighth.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use super::{
    card::Card,
    fdinfo::DrmClient,
    files::{number_in, numbered, read_text},
};
use crate::{base::clock::monotonic_ns, gpu::reading::Busy};

/// Of the processes that hold nothing, one in so many is looked at with each reading.
const TURNS: u32 = 8;
/// Readings in which a new process is looked at each time: it is starting up.
const YOUNG: u8 = 5;
/// Descriptors looked at in one process; the lowest, for devices are opened early.
const MOST_DESCRIPTORS: usize = 4096;

/// What is known of processes from one reading to the next.
#[derive(Default)]
pub struct Clients {
    turn: u32,
    /// Readings since each process was seen first.
    ages: BTreeMap<u32, u8>,
    /// By process and card (its place in the list's order, by render minor): what its clients were, and when.
    last: BTreeMap<(u32, u32), (u64, BTreeMap<u64, DrmClient>)>,
}

/// A process on a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which process.
    pub pid: u32,
    /// Render minor of the card.
    pub card: u32,
    /// Share of the time in which its busiest kind of engine worked for it.
    pub busy: Option<Busy>,
    /// Device memory that it holds.
    pub memory_bytes: Option<u64>,
    /// Whether an engine ever worked for it.
    pub has_worked: bool,
}

impl Clients {
    /// The processes below `proc` that use one of `cards`, by their numbers.
    pub fn read(&mut self, proc: &Path, cards: &[Card]) -> Vec<Held> {
        self.turn = self.turn.wrapping_add(1) % TURNS;
        let holders: BTreeSet<u32> = self.last.keys().map(|(pid, _)| *pid).collect();
        let mut last = std::mem::take(&mut self.last);
        let (mut ages, mut told, mut held) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        for (pid, folder) in numbered(proc, "") {
            let age = self.ages.get(&pid).copied().unwrap_or(0);
            ages.insert(pid, age.saturating_add(1));
            if age < YOUNG || pid % TURNS == self.turn || holders.contains(&pid) {
                let now_ns = monotonic_ns();
                for (card, clients) in clients(&folder, cards) {
                    let older = last.remove(&(pid, card));
                    held.extend(self.hold(pid, card, now_ns, clients, older, &mut told));
                }
            }
        }
        self.ages = ages;
        held
    }

    /// What a process does with its `clients` of a card. A client that it shares with a process of a lower
    /// number is told there.
    fn hold(
        &mut self,
        pid: u32,
        card: u32,
        now_ns: u64,
        mut clients: BTreeMap<u64, DrmClient>,
        older: Option<(u64, BTreeMap<u64, DrmClient>)>,
        told: &mut BTreeSet<(u32, u64)>,
    ) -> Option<Held> {
        if !clients.values().any(DrmClient::is_used) {
            return None;
        }
        let mut shares: Option<BTreeMap<&str, u64>> = None;
        let mut memory_bytes: Option<u64> = None;
        for (id, client) in &mut clients {
            if let Some(old) = older.as_ref().and_then(|(_, older)| older.get(id)) {
                client.keep_larger(old);
            }
            let is_first = *id == NO_ID || told.insert((card, *id));
            if let Some(bytes) = client.memory_bytes() {
                let own = if is_first { bytes } else { 0 };
                memory_bytes = Some(memory_bytes.unwrap_or(0).saturating_add(own));
            }
            let Some((at_ns, older)) = &older else { continue };
            // One that was opened since has worked from nothing; when, nobody knows: from the next on.
            let Some(old) = older.get(id) else { continue };
            for (engine, ppm) in client.shares(old, now_ns.saturating_sub(*at_ns)) {
                let share = shares.get_or_insert_default().entry(engine).or_default();
                *share += if is_first { ppm } else { 0 };
            }
        }
        let busiest = shares.and_then(|shares| shares.into_values().max());
        let busy = busiest.map(|ppm| Busy { sm_ppm: ppm.min(1_000_000), memory_ppm: None });
        let has_worked = clients.values().any(DrmClient::has_worked);
        self.last.insert((pid, card), (now_ns, clients));
        Some(Held { pid, card, busy, memory_bytes, has_worked })
    }
}

/// Stands for a client whose driver gives no number.
const NO_ID: u64 = u64::MAX;

/// The clients of one process, by card; many descriptors may be one client.
fn clients(process: &Path, cards: &[Card]) -> BTreeMap<u32, BTreeMap<u64, DrmClient>> {
    let mut clients: BTreeMap<u32, BTreeMap<u64, DrmClient>> = BTreeMap::new();
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else { return clients };
    for descriptor in descriptors.flatten().take(MOST_DESCRIPTORS) {
        let Ok(target) = fs::read_link(descriptor.path()) else { continue };
        let Ok(node) = target.strip_prefix("/dev/dri") else { continue };
        let info = process.join("fdinfo").join(descriptor.file_name());
        let Some(client) = read_text(&info).and_then(|text| DrmClient::parse(&text)) else {
            continue;
        };
        let minor = node.to_str().and_then(|node| number_in(node, "renderD"));
        let is_of = |card: &&Card| match &client.address {
            Some(address) => card.address == *address,
            None => Some(card.render_minor) == minor,
        };
        if let Some(card) = cards.iter().find(is_of) {
            let id = client.id.unwrap_or(NO_ID);
            clients.entry(card.render_minor).or_default().insert(id, client);
        }
    }
    clients
}
