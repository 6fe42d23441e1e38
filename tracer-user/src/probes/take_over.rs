//! Taking over what an agent before this one left pinned and attached: nothing is loaded, and nothing is
//! counted twice or left out.

use std::{
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tracer_ebpf::settings;

use super::{
    drain::{Decoders, Parts, Probes},
    events::Cgroup,
    hooks::{HOOKS, HookState},
    leases::Leases,
    load::{Options, object},
    maps::{Maps, open_pin},
    pins::{map_pin, set_dir, set_name},
    programs::Programs,
    rodata::{RODATA, read_global},
    running::Reported,
    words::Words,
};
use crate::{
    base::layout::Layout,
    model::{job::Slot, snapshot::Snapshot, tables},
};

/// A new cgroup has its entry so long after it took a spare slot, both by one run of a program.
const ENTERED_WITHIN: Duration = Duration::from_millis(10);

/// What the next agent has to know and the maps do not tell.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Carried {
    /// The set of programs and maps that this is about.
    set: String,
    states: Vec<HookState>,
    unknown: Vec<String>,
    reported: Reported,
    no_room: u64,
}

impl Probes {
    /// What the next agent has to know, which loads `options` for `layout`.
    ///
    /// # Errors
    /// When the object cannot be read.
    pub fn carried(&self, layout: &Layout, options: &Options) -> Result<Carried> {
        Ok(Carried {
            set: set_name(&object(options)?, layout, options),
            states: self.states.clone(),
            unknown: self.unknown.iter().map(|name| (*name).to_owned()).collect(),
            reported: self.running.clone(),
            no_room: self.no_room,
        })
    }

    /// Programs that should run and do not.
    fn detached(&self) -> Vec<&'static str> {
        let wanted = HOOKS.iter().zip(&self.states);
        let wanted = wanted.filter(|(_, state)| **state == HookState::Attached);
        let programs = wanted.map(|(hook, _)| hook.program);
        programs.filter(|program| !self.programs.is_attached(program)).collect()
    }

    /// Programs that did not, or will not, run without an agent: shed by it, or beyond this kernel.
    pub fn unpinned(&self) -> &[&'static str] {
        &self.unpinned
    }

    /// Every cgroup that has an entry in the kernel's table.
    pub fn entered(&self) -> Vec<Cgroup> {
        self.maps.ids.all()
    }

    /// A cgroup with an entry was removed while nobody looked.
    pub fn was_removed(&mut self, cgroup: Cgroup) {
        self.remember_removed(cgroup, Instant::now());
    }
}

/// Takes over the set that `carried` is about, whose values were `last` when they were reported last.
///
/// # Errors
/// When there is no such set, it is of other programs or settings than `options` and `layout` ask for,
/// or not whole.
pub fn take_over(
    root: &Path,
    layout: &Layout,
    options: &Options,
    carried: &Carried,
    last: &Snapshot,
) -> Result<Probes> {
    let object = object(options)?;
    let name = set_name(&object, layout, options);
    ensure!(carried.set == name, "the previous agent ran other programs or settings");
    let dir = set_dir(root, &name);
    ensure!(dir.is_dir(), "its programs are gone");
    ensure!(carried.states.len() == HOOKS.len(), "its state lists other hooks");
    let rodata = open_pin(&map_pin(&dir, RODATA))?;
    let sample_every = read_global(&rodata, &object, settings::MINOR_LATENCY_EVERY)?;
    ensure!(sample_every > 0, "its globals are damaged");
    let programs = Programs::open(&dir, sample_every)?;
    let words = |flags: &Words| -> Vec<(Slot, u64)> {
        (0..=options.most_slots).map(|slot| (slot, flags.get(slot.into()))).collect()
    };
    let mut maps = Maps::open(&dir)?;
    let leases = Leases::restore(options.most_slots, words(&maps.flags));
    // An offer that the agent before did not live to make is made now.
    let offered = maps.offered()?;
    let others: Vec<_> = leases.spare().filter(|slot| !offered.contains(slot)).collect();
    if !others.is_empty() {
        // One that a cgroup took a moment ago is being entered.
        sleep(ENTERED_WITHIN);
    }
    let taken = maps.ids.slots();
    for slot in others.into_iter().filter(|slot| !taken.contains(slot)) {
        maps.offer(slot)?;
    }
    maps.set_pins(&dir);
    // Killed between the placing of a bank and its lease: the bank may not be in its place.
    let held = leases.used().map(|(_, slot)| slot).chain(leases.spare()).collect::<Vec<_>>();
    maps.slots.retain(|slot, _| held.contains(slot));
    let unknown = carried.unknown.iter().filter_map(|name| known_name(name)).collect();
    let states = carried.states.clone();
    let parts = Parts { programs, maps, states, unknown, sample_every, since_ns: 0, log: None };
    let mut probes = Probes::new(parts, options, layout);
    probes.leases = leases;
    probes.running = carried.reported.clone();
    probes.no_room = carried.no_room;
    for (lease, groups) in &last.slots {
        probes.decoders.insert(*lease, Decoders::after(groups));
        let blocks = groups.iter().filter(|group| group.is(&tables::BLOCK));
        probes.seeds.extend(blocks.map(|group| (*lease, group.clone())));
    }
    let all: Vec<_> = HOOKS.iter().map(|hook| hook.program).collect();
    probes.unpinned = probes.detached();
    probes.attach(&all).context("cannot attach the programs that did not stay attached")?;
    Ok(probes)
}

/// The field or measurement of that name.
fn known_name(name: &str) -> Option<&'static str> {
    let fields = tables::ALL.iter().flat_map(|table| table.fields.iter().map(|field| field.name));
    fields.chain(tables::ALL.iter().map(|table| table.name)).find(|known| *known == name)
}
