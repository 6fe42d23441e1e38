//! GPUs by the kernel's own files: AMD's from sysfs and its compute driver, without ROCm; Intel's and others'
//! from what their drivers tell of each open file (fdinfo). NVIDIA's are left to its library.

mod card;
mod clients;
pub(crate) mod fdinfo;
mod files;
mod kfd;
mod metrics;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

pub use self::card::FoundCard;
use self::{
    card::{Card, NewCard},
    clients::Clients,
};
use super::{
    member::read_cgroups,
    reading::ProcessReading,
    source::{Answers, GpuSource, Presence},
};

/// All cards but NVIDIA's.
pub struct Cards {
    root: PathBuf,
    cards: Vec<Card>,
    clients: Clients,
}

impl Cards {
    /// Nothing is read yet; sys and proc are below `root`.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), cards: Vec::new(), clients: Clients::default() }
    }

    /// Each, once a reading has found them.
    pub fn devices(&self) -> Vec<FoundCard> {
        self.cards.iter().map(Card::found).collect()
    }

    /// Opens what is new, and says what is gone.
    fn refresh(&mut self, answers: &mut Answers) {
        let mut found = NewCard::all(&self.root);
        let minors: Vec<_> = found.iter().map(NewCard::render_minor).collect();
        let is_same = self.cards.iter().map(|card| card.render_minor).eq(minors.iter().copied());
        if is_same {
            return;
        }
        for card in self.cards.iter().filter(|card| !minors.contains(&card.render_minor)) {
            let text =
                format!("{} was lost for a time or for good (its files were gone)", card.name());
            answers.say_lost(&card.device.uuid, text);
        }
        let nodes = kfd::nodes(&self.root);
        let order = |found: &NewCard| nodes.get(&found.render_minor()).map(|node| node.order);
        // As the makers' runtimes count: by compute node, then by card.
        found.sort_by_key(|found| (order(found).unwrap_or(u32::MAX), found.card));
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        let open = |found: NewCard| {
            let count = counts.entry(found.vendor().to_owned()).or_default();
            let index = *count;
            *count += 1;
            let node = nodes.get(&found.render_minor()).copied();
            found.open(index, node)
        };
        self.cards = found.into_iter().map(open).collect();
        self.cards.sort_by_key(|card| minors.iter().position(|minor| *minor == card.render_minor));
    }

    /// The processes on each card, by its render minor.
    fn processes(&mut self) -> BTreeMap<u32, BTreeMap<u32, ProcessReading>> {
        let proc = self.root.join("proc");
        let mut all: BTreeMap<u32, BTreeMap<u32, ProcessReading>> = BTreeMap::new();
        let has_nodes = self.cards.iter().any(|card| card.node.is_some());
        let computing = if has_nodes { kfd::processes(&self.root) } else { Vec::new() };
        for held in self.clients.read(&proc, &self.cards) {
            // What the compute driver runs is not in these files: it tells of its processes better.
            let computes = computing.iter().any(|(pid, _)| *pid == held.pid);
            let is_compute_card =
                self.cards.iter().any(|card| card.render_minor == held.card && card.node.is_some());
            if computes && is_compute_card && !held.has_worked {
                continue;
            }
            let busy = held.busy.filter(|_| !(computes && is_compute_card));
            let process = ProcessReading {
                pid: held.pid,
                memory_bytes: held.memory_bytes,
                busy,
                ..ProcessReading::default()
            };
            all.entry(held.card).or_default().insert(held.pid, process);
        }
        for (pid, folder) in &computing {
            for card in &self.cards {
                let Some(node) = card.node else { continue };
                let Some(compute) = kfd::compute(folder, node.gpu_id) else { continue };
                let on_card = all.entry(card.render_minor).or_default();
                let process = on_card
                    .entry(*pid)
                    .or_insert_with(|| ProcessReading { pid: *pid, ..ProcessReading::default() });
                process.memory_bytes = process.memory_bytes.max(compute.vram_bytes);
                let ppm =
                    |units: u64| units.saturating_mul(1_000_000).checked_div(node.compute_units);
                process.sm_activity_ppm =
                    compute.compute_units.and_then(ppm).map(|ppm| ppm.min(1_000_000));
            }
        }
        for process in all.values_mut().flat_map(BTreeMap::values_mut) {
            process.cgroups = read_cgroups(&proc, process.pid).unwrap_or_default();
        }
        all
    }
}

impl GpuSource for Cards {
    fn read(&mut self, answers: &mut Answers) -> Presence {
        self.refresh(answers);
        if self.cards.is_empty() {
            return Presence::Absent;
        }
        let mut processes = self.processes();
        for card in &self.cards {
            let mut reading = card.read();
            let on_card = processes.remove(&card.render_minor).unwrap_or_default();
            reading.processes = on_card.into_values().collect();
            answers.devices.push(reading);
        }
        Presence::Here
    }
}
