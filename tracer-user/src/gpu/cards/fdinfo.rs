//! What /proc/PID/fdinfo/FD tells of a file that is open on a GPU (the kernel's drm-usage-stats). Pure.

use std::collections::BTreeMap;

/// More engines or regions than any device has.
const MOST: usize = 64;
/// Engines that only copy: NVIDIA's utilisation leaves these out too.
const COPYING: [&str; 5] = ["copy", "dma", "sdma", "bcs", "transfer"];
/// Regions that are the device's own memory, by the beginning of their names.
const OWN_MEMORY: [&str; 2] = ["vram", "local"];

/// One client: what a process opened, once, however many descriptors it has of it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DrmClient {
    /// `i915`, `amdgpu`, …
    pub driver: String,
    /// PCI address, where the device has one.
    pub address: Option<String>,
    /// Its number, alone among the driver's.
    pub id: Option<u64>,
    engines: BTreeMap<String, Engine>,
    regions: BTreeMap<String, Region>,
}

/// What one kind of engine did for a client; it only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Engine {
    busy_ns: Option<u64>,
    /// Of a driver that counts cycles: the client's, and those that passed.
    cycles: Option<u64>,
    total_cycles: Option<u64>,
    /// How many such engines there are.
    capacity: Option<u64>,
}

/// Bytes of a region of memory, by how the driver tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Region {
    resident: Option<u64>,
    memory: Option<u64>,
    total: Option<u64>,
}

impl DrmClient {
    /// `None` for a file that is not on a GPU, or whose driver tells nothing.
    pub fn parse(text: &str) -> Option<Self> {
        let mut client = Self::default();
        for line in text.lines() {
            let Some((key, value)) =
                line.strip_prefix("drm-").and_then(|line| line.split_once(':'))
            else {
                continue;
            };
            client.take(key, value.trim());
        }
        (!client.driver.is_empty()).then_some(client)
    }

    fn take(&mut self, key: &str, value: &str) {
        match key {
            "driver" => self.driver = value.to_owned(),
            "pdev" => self.address = Some(value.to_owned()),
            "client-id" => self.id = value.parse().ok(),
            _ => {
                // The longer names first: one begins with the other.
                for (prefix, of) in [
                    ("engine-capacity-", Self::capacity as fn(&mut Self, &str, &str)),
                    ("engine-", Self::engine),
                    ("cycles-", Self::cycles),
                    ("total-cycles-", Self::total_cycles),
                    ("resident-", Self::resident),
                    ("memory-", Self::memory),
                    ("total-", Self::total),
                ] {
                    if let Some(name) = key.strip_prefix(prefix) {
                        of(self, name, value);
                        break;
                    }
                }
            }
        }
    }

    fn of_engine(&mut self, name: &str) -> Option<&mut Engine> {
        entry(&mut self.engines, name)
    }

    fn of_region(&mut self, name: &str) -> Option<&mut Region> {
        entry(&mut self.regions, name)
    }

    fn capacity(&mut self, name: &str, value: &str) {
        let capacity = value.parse().ok();
        self.of_engine(name).into_iter().for_each(|engine| engine.capacity = capacity);
    }

    fn engine(&mut self, name: &str, value: &str) {
        let ns = value.strip_suffix("ns").and_then(|ns| ns.trim().parse().ok());
        self.of_engine(name).into_iter().for_each(|engine| engine.busy_ns = ns);
    }

    fn cycles(&mut self, name: &str, value: &str) {
        let cycles = value.parse().ok();
        self.of_engine(name).into_iter().for_each(|engine| engine.cycles = cycles);
    }

    fn total_cycles(&mut self, name: &str, value: &str) {
        let cycles = value.parse().ok();
        self.of_engine(name).into_iter().for_each(|engine| engine.total_cycles = cycles);
    }

    fn resident(&mut self, name: &str, value: &str) {
        self.of_region(name).into_iter().for_each(|region| region.resident = bytes(value));
    }

    fn memory(&mut self, name: &str, value: &str) {
        self.of_region(name).into_iter().for_each(|region| region.memory = bytes(value));
    }

    fn total(&mut self, name: &str, value: &str) {
        self.of_region(name).into_iter().for_each(|region| region.total = bytes(value));
    }

    /// Whether it ever made an engine work.
    pub fn has_worked(&self) -> bool {
        let work = |engine: &Engine| engine.busy_ns.or(engine.cycles).is_some_and(|done| done > 0);
        self.engines.values().any(work)
    }

    /// Whether it is more than an open file: it worked, has memory, or its driver tells neither.
    pub fn is_used(&self) -> bool {
        let some = |region: &Region| region.bytes().is_some_and(|bytes| bytes > 0);
        self.has_worked()
            || self.regions.values().any(some)
            || self.engines.is_empty() && self.regions.is_empty()
    }

    /// Bytes of the device's own memory that it holds; `None` where it has none or does not tell.
    pub fn memory_bytes(&self) -> Option<u64> {
        let own = self
            .regions
            .iter()
            .filter(|(name, _)| OWN_MEMORY.iter().any(|own| name.starts_with(own)));
        own.filter_map(|(_, region)| region.bytes()).reduce(u64::saturating_add)
    }

    /// Drivers' counters may step back and catch up: that is no work, neither now nor later.
    pub fn keep_larger(&mut self, older: &Self) {
        for (name, engine) in &mut self.engines {
            let Some(old) = older.engines.get(name) else { continue };
            for (new, old) in [
                (&mut engine.busy_ns, old.busy_ns),
                (&mut engine.cycles, old.cycles),
                (&mut engine.total_cycles, old.total_cycles),
            ] {
                *new = new.map(|new| old.map_or(new, |old| new.max(old)));
            }
        }
    }

    /// Share of `elapsed_ns`, in millionths, in which each kind of engine worked for it, since it was
    /// `older`; those that only copy are left out.
    pub fn shares(&self, older: &Self, elapsed_ns: u64) -> BTreeMap<&str, u64> {
        let engines = self.engines.iter().filter(|(name, _)| !COPYING.contains(&name.as_str()));
        let share = |(name, engine): (&'_ String, &Engine)| {
            let old = older.engines.get(name)?;
            Some((self.engines.get_key_value(name)?.0.as_str(), engine.share(old, elapsed_ns)?))
        };
        engines.filter_map(share).collect()
    }
}

fn entry<'a, T: Default>(map: &'a mut BTreeMap<String, T>, name: &str) -> Option<&'a mut T> {
    let is_room = map.len() < MOST || map.contains_key(name);
    is_room.then(|| map.entry(name.to_owned()).or_default())
}

impl Engine {
    fn share(&self, old: &Self, elapsed_ns: u64) -> Option<u64> {
        let growth = |new: Option<u64>, old: Option<u64>| Some((new?, old?));
        let (done, of) = match growth(self.busy_ns, old.busy_ns) {
            Some((new, old)) => (new.saturating_sub(old), elapsed_ns),
            None => {
                let (new, old_cycles) = growth(self.cycles, old.cycles)?;
                let (total, old_total) = growth(self.total_cycles, old.total_cycles)?;
                (new.saturating_sub(old_cycles), total.checked_sub(old_total)?)
            }
        };
        let of = u128::from(of) * u128::from(self.capacity.unwrap_or(1).max(1));
        let ppm = (u128::from(done) * 1_000_000).checked_div(of)?;
        Some(ppm.min(1_000_000) as u64)
    }
}

impl Region {
    fn bytes(&self) -> Option<u64> {
        self.resident.or(self.memory).or(self.total)
    }
}

/// `12`, `12 KiB`, `12 MiB`; others are not defined.
fn bytes(value: &str) -> Option<u64> {
    let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
    let factor = match unit.trim() {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests;
