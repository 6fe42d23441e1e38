//! Filing a value in a histogram.

use core::{
    arch::asm,
    ptr::{addr_of_mut, read_volatile},
};

use tracer_ebpf::loglinear::{BUCKETS, Buckets, Ends, FIRST, KernelHist, bucket_by};

/// Bounds an index to a histogram's buckets by a real instruction: LLVM drops a mask it can prove
/// needless, and the verifier then misses it.
#[inline(always)]
fn bounded(index: u32) -> usize {
    const _: () = assert!(BUCKETS == 128);
    let mut index = u64::from(index);
    // SAFETY: masks a register.
    unsafe { asm!("{0} &= 127", inout(reg) index, options(pure, nomem, nostack)) };
    index as usize
}

/// Bucket of `value`.
#[inline(always)]
fn bucket(value: u64) -> u32 {
    bucket_by(value, |mut units| {
        // SAFETY: masks a register; the index is then within the table. As in `bounded`.
        unsafe {
            asm!("{0} &= 255", inout(reg) units, options(pure, nomem, nostack));
            read_volatile(FIRST.as_ptr().add(units as usize)).into()
        }
    })
}

/// Files `value` in this CPU's own histogram.
///
/// # Safety
/// `hist` lies in a map value that only this CPU writes.
#[inline(always)]
pub unsafe fn file(hist: *mut KernelHist, value: u64) {
    let bucket = bounded(bucket(value));
    // SAFETY: the caller's; `bucket` is below BUCKETS.
    unsafe {
        *addr_of_mut!((*hist).buckets).cast::<u32>().add(bucket) += 1;
        (*hist).sum += value;
        if value > (*hist).max {
            (*hist).max = value;
        }
    }
}

/// Adds to a word that several CPUs write.
///
/// # Safety
/// `word` lies in a map value.
#[inline(always)]
pub unsafe fn add_shared(word: *mut u64, value: u64) {
    // SAFETY: the caller's. Inline, because the target has no atomics of its own.
    unsafe { asm!("lock *(u64 *)({0} + 0) += {1}", in(reg) word, in(reg) value, options(nostack)) };
}

/// Files `value` in a histogram that several CPUs write.
///
/// # Safety
/// `ends` and `buckets` lie in a map value.
#[inline(always)]
pub unsafe fn file_shared(ends: *mut Ends, buckets: *mut Buckets, value: u64) {
    let bucket = bounded(bucket(value));
    // SAFETY: the caller's; `bucket` is below BUCKETS.
    unsafe {
        let count = buckets.cast::<u32>().add(bucket);
        asm!("lock *(u32 *)({0} + 0) += {1}", in(reg) count, in(reg) 1_u64, options(nostack));
        add_shared(addr_of_mut!((*ends).sum), value);
        if value > (*ends).max {
            (*ends).max = value;
        }
    }
}
