//! Taking over what an agent before this one left pinned and attached: nothing is loaded, and nothing is
//! counted twice or left out.

use std::{path::Path, thread::sleep, time::Duration};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tracer_ebpf::settings;

use super::{
    blocks::Blocks,
    drain::{Parts, Probes},
    hooks::HOOKS,
    load::all_hooks,
    options::Options,
    readings::Readings,
    records::Records,
    running::Reported,
    slots::Slots,
    waits::{CarriedWaits, Waits},
};
use crate::{
    base::layout::Layout,
    bpf::{
        hook::HookState,
        maps::of_pinned,
        pins::set_dir,
        programs::Programs,
        rodata::{RODATA, read_global},
        set::Set,
    },
    model::{snapshot::Snapshot, tables},
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
    waits: CarriedWaits,
}

impl Probes {
    /// What the next agent has to know, which loads `options` for `layout`.
    ///
    /// # Errors
    /// When the object cannot be read.
    pub fn carried(&self, layout: &Layout, options: &Options) -> Result<Carried> {
        Ok(Carried {
            set: options.set_name(&options.object()?, layout),
            states: self.set.states().to_vec(),
            unknown: self.readings.unknown().iter().map(|name| (*name).to_owned()).collect(),
            reported: self.readings.reported().clone(),
            no_room: self.slots.no_room(),
            waits: self.waits.carried(),
        })
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
    let object = options.object()?;
    let name = options.set_name(&object, layout);
    ensure!(carried.set == name, "the previous agent ran other programs or settings");
    let dir = set_dir(root, &name);
    ensure!(dir.is_dir(), "its programs are gone");
    ensure!(carried.states.len() == HOOKS.len(), "its state lists other hooks");
    let mut take = of_pinned(&dir);
    let sample_every = read_global(&take(RODATA)?, &object, settings::MINOR_LATENCY_EVERY)?;
    ensure!(sample_every > 0, "its globals are damaged");
    let programs = Programs::open(&dir, all_hooks(), sample_every)?;
    let (records, blocks) = (Records::new(&mut take)?, Blocks::new(&mut take)?);
    let waits = Waits::new(&mut take)?;
    let mut slots = Slots::new(&mut take, layout, options)?;
    slots.restore(&dir, carried.no_room, || sleep(ENTERED_WITHIN))?;
    let mut set = Set::new(programs, all_hooks(), carried.states.clone(), None);
    set.find_unpinned();
    let unknown = carried.unknown.iter().filter_map(|name| known_name(name)).collect();
    let mut readings = Readings::new(unknown, sample_every);
    readings.set_reported(carried.reported.clone());
    let parts = Parts { set, records, slots, blocks, waits, readings, since_ns: 0 };
    let mut probes = Probes::new(parts, options);
    for (lease, groups) in &last.slots {
        probes.readings.go_on(*lease, groups);
        probes.blocks.go_on(*lease, groups);
    }
    probes.waits.go_on(carried.waits.clone());
    probes.attach_all().context("cannot attach the programs that did not stay attached")?;
    Ok(probes)
}

/// The field or measurement of that name.
fn known_name(name: &str) -> Option<&'static str> {
    let fields = tables::ALL.iter().flat_map(|table| table.fields.iter().map(|field| field.name));
    fields.chain(tables::ALL.iter().map(|table| table.name)).find(|known| *known == name)
}
