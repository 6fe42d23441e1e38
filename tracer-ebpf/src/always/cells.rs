//! Finding a key's cell, or claiming one for it.

use aya_ebpf::bindings::BPF_NOEXIST;
use tracer_ebpf::cells::{CELL_STEPS, CELLS, cell_after, first_cell};

use crate::maps::Claims;

/// A table of cells, each of which begins with its key.
pub trait Table {
    /// Its cells.
    type Cell;

    /// Cell `index`.
    fn cell(index: u32) -> Option<*mut Self::Cell>;

    /// Arbiter of two CPUs that want the same free cell: an insert is atomic, and the target has no
    /// compare-and-swap on kernels below 5.12. Touched once for each cell.
    fn claims() -> &'static Claims;
}

/// The cell of `key` and its number, claimed if it is new; `None` where there is no room.
#[inline(always)]
pub fn cell<T: Table>(key: u64) -> Option<(u32, *mut T::Cell)> {
    let first = first_cell(key);
    let cell = T::cell(first)?;
    if holds(cell, key) {
        return Some((first, cell));
    }
    let found = search::<T>(first, key) as u32;
    Some((found, T::cell(found)?))
}

/// The cell of `key`, whose first one is another's: found, or claimed; [`CELLS`] where there is no
/// room. A function of its own, so that the usual event does not pull it into the cache.
#[inline(never)]
fn search<T: Table>(first: u32, key: u64) -> u64 {
    let mut step = 1;
    while step < CELL_STEPS {
        let index = cell_after(first, step);
        if T::cell(index).is_some_and(|cell| holds(cell, key)) {
            return index.into();
        }
        step += 1;
    }
    step = 0;
    while step < CELL_STEPS {
        let index = cell_after(first, step);
        // Fails where another key, or the same on another CPU, was there first.
        let _ = T::claims().insert(&index, &key, BPF_NOEXIST.into());
        // SAFETY: the value is read once; claims do not change.
        if unsafe { T::claims().get(&index) } == Some(&key)
            && let Some(cell) = T::cell(index)
        {
            // SAFETY: a cell of the table, this key's alone.
            unsafe { cell.cast::<u64>().write_volatile(key) };
            return index.into();
        }
        step += 1;
    }
    CELLS.into()
}

/// Whether `cell` is that of `key`.
#[inline(always)]
fn holds<C>(cell: *mut C, key: u64) -> bool {
    // SAFETY: a cell of the table; its key is written once, when it is claimed.
    unsafe { cell.cast::<u64>().read_volatile() == key }
}
