//! An operation that has ended. It lies in a map, and whatever is asked of it is read there: the verifier looks at what
//! follows once for each way that leads there as long as these differ in what it knows of any value, and of what a map
//! holds it knows nothing. On the stack it is above a million instructions for Linux 5.10.

use tracer_ebpf::{
    io_calls::IoCall,
    settings::globals::PAGE_BYTES,
    tables::{
        io::{IoCpu, IoKey},
        io_ended::Ended,
        io_file::FileId,
    },
};

use crate::{
    cells::Meanwhile,
    kernel::global,
    places::{Place, System},
};

/// Where an operation lies, of this CPU's own.
#[derive(Clone, Copy)]
pub struct Operation(*mut Ended);

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $word:ty),*) => {
        $($(#[$doc])*
        #[inline(always)]
        pub fn $name(self) -> $word {
            // SAFETY: this CPU's own; volatile, because what is read there is known otherwise.
            unsafe { (&raw const (*self.0).$name).read_volatile() }
        })*
    };
}

impl Operation {
    /// That of a call on `cpu`, this one.
    ///
    /// # Safety
    /// `cpu` is this CPU's own.
    #[inline(always)]
    pub unsafe fn of_call(cpu: *mut IoCpu) -> Self {
        // SAFETY: the caller's.
        Self(unsafe { &raw mut (*cpu).ended })
    }

    /// That of a request to io_uring, which may complete within a call.
    ///
    /// # Safety
    /// `cpu` is this CPU's own.
    #[inline(always)]
    pub unsafe fn of_request(cpu: *mut IoCpu) -> Self {
        // SAFETY: the caller's.
        Self(unsafe { &raw mut (*cpu).completed })
    }

    /// Notes that `call` at `place` ended at `now_ns` with `result`; it took so long, where that is known.
    #[inline(always)]
    pub fn note(self, call: IoCall, place: &Place, now_ns: u64, took_ns: Option<u64>, result: i64) {
        let Place { system, file } = place;
        // SAFETY: this CPU's own. One by one: LLVM would call a function that copies so much.
        unsafe {
            (&raw mut (*self.0).now_ns).write_volatile(now_ns);
            (&raw mut (*self.0).took_ns).write_volatile(took_ns.unwrap_or(0));
            (&raw mut (*self.0).is_timed).write_volatile(took_ns.is_some().into());
            (&raw mut (*self.0).result).write_volatile(result);
            (&raw mut (*self.0).block).write_volatile(system.block);
            (&raw mut (*self.0).device).write_volatile(system.device);
            (&raw mut (*self.0).file).write_volatile(file.address);
            (&raw mut (*self.0).size_bytes).write_volatile(file.size_bytes);
            (&raw mut (*self.0).id.device).write_volatile(file.id.device);
            (&raw mut (*self.0).id.generation).write_volatile(file.id.generation);
            (&raw mut (*self.0).id.inode).write_volatile(file.id.inode);
            (&raw mut (*self.0).call).write_volatile(call.0);
        }
    }

    /// Notes whether its task gave its CPU away, and what else came of it.
    #[inline(always)]
    pub fn note_besides(self, has_waited: bool, meanwhile: &Meanwhile) {
        // SAFETY: as above.
        unsafe {
            (&raw mut (*self.0).has_waited).write_volatile(has_waited.into());
            (&raw mut (*self.0).device_bytes).write_volatile(meanwhile.device_bytes);
            (&raw mut (*self.0).fetched_pages).write_volatile(meanwhile.fetched_pages);
            (&raw mut (*self.0).pauses).write_volatile(meanwhile.pauses);
            (&raw mut (*self.0).paused_ticks).write_volatile(meanwhile.paused_ticks);
        }
    }

    fields! {
        /// When it ended, CLOCK_MONOTONIC.
        now_ns: u64,
        /// Nanoseconds; 0 where its begin was not seen.
        took_ns: u64,
        /// What the call returned.
        result: i64,
        /// Address of the open file; 0 where there is none, or it is gone.
        file: u64,
        /// The size of that.
        size_bytes: u64
    }

    /// The call.
    #[inline(always)]
    pub fn call(self) -> IoCall {
        // SAFETY: as above.
        IoCall(unsafe { (&raw const (*self.0).call).read_volatile() })
    }

    /// Whether its begin was seen.
    #[inline(always)]
    pub fn is_timed(self) -> bool {
        // SAFETY: as above.
        unsafe { (&raw const (*self.0).is_timed).read_volatile() != 0 }
    }

    /// Whether the task gave its CPU away.
    #[inline(always)]
    pub fn has_waited(self) -> bool {
        // SAFETY: as above.
        unsafe { (&raw const (*self.0).has_waited).read_volatile() != 0 }
    }

    /// What the file is called by; number 0 is none.
    #[inline(always)]
    pub fn id(self) -> FileId {
        // SAFETY: as above.
        unsafe {
            FileId {
                device: (&raw const (*self.0).id.device).read_volatile(),
                generation: (&raw const (*self.0).id.generation).read_volatile(),
                inode: (&raw const (*self.0).id.inode).read_volatile(),
            }
        }
    }

    /// The file system.
    #[inline(always)]
    pub fn system(self) -> System {
        // SAFETY: as above.
        unsafe {
            System {
                device: (&raw const (*self.0).device).read_volatile(),
                block: (&raw const (*self.0).block).read_volatile(),
            }
        }
    }

    /// The key of its cell.
    #[inline(always)]
    pub fn key(self) -> IoKey {
        IoKey { device: self.system().device, op: self.call().op() as u16, error: 0 }
    }

    /// What came of it besides.
    #[inline(always)]
    pub fn meanwhile(self) -> Meanwhile {
        // SAFETY: as above.
        unsafe {
            Meanwhile {
                device_bytes: (&raw const (*self.0).device_bytes).read_volatile(),
                fetched_pages: (&raw const (*self.0).fetched_pages).read_volatile(),
                pauses: (&raw const (*self.0).pauses).read_volatile(),
                paused_ticks: (&raw const (*self.0).paused_ticks).read_volatile(),
            }
        }
    }

    /// Bytes that it moved; 0 where it moves none.
    #[inline(always)]
    pub fn moved_bytes(self) -> u64 {
        let result = self.result();
        if self.call().is_moving() && result > 0 { result as u64 } else { 0 }
    }

    /// Bytes of the pages that came into the page cache.
    #[inline(always)]
    pub fn fetched_bytes(self) -> u64 {
        u64::from(self.meanwhile().fetched_pages) * global(&PAGE_BYTES)
    }
}
