//! Loading and attaching the programs beside those that always run, whose table of cgroups they share.

use anyhow::{Context, Result};
use aya::maps::{ArrayOfMaps, MapData};
use tracer_ebpf::settings;

use super::{
    hooks::{CENSUS_HOOKS, SEEN_BY_MAPPING, SEEN_BY_OPENING, SEEN_BY_READING, is_for},
    read::{Census, Maps},
};
use crate::{
    base::{clock::monotonic_ns, layout::Layout, memory::give_back_freed},
    bpf::{
        attach::{attach_all, check, planned},
        btf::Btf,
        hook::Hook,
        kernel_calls::KernelCalls,
        load::{Plan, create},
        maps::{TakeMap, of_loaded},
        memlock::LiftedMemlock,
        programs::Programs,
        set::Set,
        type_ids::TypeIds,
    },
    model::seen::Means,
    probes::{
        drain::Probes,
        globals::globals,
        options::{FaultMode, Options},
    },
};

/// The programs, built by `cargo xtask ebpf`.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tracer-ebpf/object/census.bpf.o"
));

/// How much room there is.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Things seen, of all jobs at once.
    pub sights: u32,
    /// Bytes of the ring: a power of two.
    pub ring_bytes: u32,
}

impl Room {
    /// For one job.
    pub const JOB: Self = Self { sights: 16_384, ring_bytes: 2 << 20 };
    /// For a node's jobs.
    pub const NODE: Self = Self { sights: 65_536, ring_bytes: 2 << 20 };
}

impl Probes {
    /// Has these see which software the jobs of `layout`'s hierarchy run, from now on.
    ///
    /// # Errors
    /// When the kernel refuses the maps, or every program.
    pub fn load_census(&mut self, layout: &Layout, room: Room) -> Result<()> {
        let btf = Btf::read()?;
        let (mut globals, offsets) = globals(&btf, layout, &Options::new(FaultMode::Major))?;
        let is_typed = globals[settings::CURRENT_TASK_TYPED] != 0;
        let checked: Vec<_> = CENSUS_HOOKS
            .iter()
            .map(|row| {
                let asked = is_for(row, is_typed).then(|| check(&row.hook, &btf, &globals));
                (&row.hook, asked)
            })
            .collect();
        let calls = KernelCalls::find(&btf, &mut globals);
        let type_ids = TypeIds::find(&btf, all_hooks());
        drop(btf);
        let _lifted = LiftedMemlock::lift();
        let entries = [("SIGHTS", room.sights), ("SIGHTINGS", room.ring_bytes)];
        let plan = Plan {
            object: OBJECT,
            globals: &globals,
            offsets: &offsets,
            calls,
            entries: &entries,
            tables: &[],
            log_level: 0,
        };
        let mut ebpf = create(&plan)?;
        let mut take = of_loaded(&mut ebpf);
        let (ids, flags) = self.slots.shared();
        // Open until the programs are loaded: they refer to them.
        let _places =
            [share(&mut take, "SHARED_IDS", ids)?, share(&mut take, "SHARED_FLAGS", flags)?];
        let maps = Maps::new(&mut take)?;
        drop(take);
        let mut programs = Programs::loaded(ebpf, 1);
        let kernel = type_ids.to_aya()?;
        let verify = |hook: &'static Hook| (hook.program, programs.load(hook, &kernel));
        let verified = planned(&checked).into_iter().map(verify).collect();
        let states = attach_all(&mut programs, &kernel, checked, verified);
        drop(kernel);
        give_back_freed();
        let set = Set::new(programs, all_hooks(), states, None);
        let is_there = |program: &str| set.is_attached(program);
        let means = if SEEN_BY_OPENING.iter().any(|program| is_there(program)) {
            Means::Open
        } else if is_there(SEEN_BY_READING) {
            Means::Read
        } else if SEEN_BY_MAPPING.iter().any(|program| is_there(program)) {
            Means::Extensions
        } else {
            Means::Programs
        };
        self.census = Some(Census::new(set, maps, means, monotonic_ns()));
        // They may ask that nothing is told of their job.
        self.slots.tell_first_execs();
        Ok(())
    }
}

/// The hooks of all rows, in their order.
fn all_hooks() -> Vec<&'static Hook> {
    CENSUS_HOOKS.iter().map(|row| &row.hook).collect()
}

/// Where the programs find a map of others.
type Place = ArrayOfMaps<MapData, MapData>;

/// Puts `map` into the place `name`.
fn share(take: &mut TakeMap<'_>, name: &str, map: &MapData) -> Result<Place> {
    let mut place: Place = take(name)?.try_into().with_context(|| format!("map {name}"))?;
    place.set(0, map, 0).with_context(|| format!("cannot share the map {name}"))?;
    Ok(place)
}
