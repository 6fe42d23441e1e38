//! `cuda_work spin MS PERIOD_MS FROM PERCENT MIB`: for so many milliseconds, holds memory of the first GPU and keeps
//! it busy for PERCENT of each period of the wall clock, from FROM percent of it on. `cuda_work crash`: writes to an address that nobody has. Needs the
//! driver alone: its library is loaded at run time, the kernels are PTX text that it compiles.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    ptr::null_mut,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

const LIBRARY: &CStr = c"libcuda.so.1";
/// One thread each: `spin` until so many nanoseconds have passed, `crash` at once.
const KERNELS: &CStr = c"
.version 6.0
.target sm_60
.address_size 64
.visible .entry spin(.param .u64 length)
{
    .reg .pred %more;
    .reg .b64 %begin, %now, %passed, %length;
    ld.param.u64 %length, [length];
    mov.u64 %begin, %globaltimer;
again:
    mov.u64 %now, %globaltimer;
    sub.u64 %passed, %now, %begin;
    setp.lt.u64 %more, %passed, %length;
    @%more bra again;
    ret;
}
.visible .entry crash(.param .u64 address)
{
    .reg .b64 %address;
    .reg .b32 %value;
    ld.param.u64 %address, [address];
    mov.u32 %value, 1;
    st.global.u32 [%address], %value;
    ret;
}
";

type Context = *mut c_void;
type Module = *mut c_void;
type Function = *mut c_void;

/// The driver's functions that are used here, as cuda.h declares them.
struct Cuda {
    launch: unsafe extern "C" fn(
        Function,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        c_uint,
        *mut c_void,
        *mut *mut c_void,
        *mut *mut c_void,
    ) -> c_int,
    synchronize: unsafe extern "C" fn() -> c_int,
    allocate: unsafe extern "C" fn(*mut u64, usize) -> c_int,
    function: unsafe extern "C" fn(*mut Function, Module, *const c_char) -> c_int,
    module: Module,
}

fn check(what: &str, code: c_int) {
    assert_eq!(code, 0, "{what} failed with CUDA's error {code}");
}

/// A function of the driver's library.
///
/// # Safety
/// `T` is the type of that function.
unsafe fn symbol<T: Copy>(library: *mut c_void, name: &CStr) -> T {
    // SAFETY: the library is open, and a function's address is as large as a pointer.
    unsafe {
        let found = libc::dlsym(library, name.as_ptr());
        assert!(!found.is_null(), "the driver has no {name:?}");
        std::mem::transmute_copy(&found)
    }
}

impl Cuda {
    /// A context on the first GPU.
    fn open() -> Self {
        type Init = unsafe extern "C" fn(c_uint) -> c_int;
        type DeviceGet = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
        type ContextCreate = unsafe extern "C" fn(*mut Context, c_uint, c_int) -> c_int;
        type ModuleLoad = unsafe extern "C" fn(*mut Module, *const c_void) -> c_int;
        // SAFETY: the types are those of cuda.h, and what is written to lives until the calls return.
        unsafe {
            let library = libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW);
            assert!(!library.is_null(), "{LIBRARY:?} cannot be loaded");
            check("cuInit", symbol::<Init>(library, c"cuInit")(0));
            let (mut device, mut context, mut module) = (0, null_mut(), null_mut());
            check("cuDeviceGet", symbol::<DeviceGet>(library, c"cuDeviceGet")(&mut device, 0));
            let create: ContextCreate = symbol(library, c"cuCtxCreate_v2");
            check("cuCtxCreate", create(&mut context, 0, device));
            let load: ModuleLoad = symbol(library, c"cuModuleLoadData");
            check("cuModuleLoadData", load(&mut module, KERNELS.as_ptr().cast()));
            Self {
                launch: symbol(library, c"cuLaunchKernel"),
                synchronize: symbol(library, c"cuCtxSynchronize"),
                allocate: symbol(library, c"cuMemAlloc_v2"),
                function: symbol(library, c"cuModuleGetFunction"),
                module,
            }
        }
    }

    fn hold(&self, bytes: usize) {
        let mut address = 0;
        // SAFETY: there is a context.
        check("cuMemAlloc", unsafe { (self.allocate)(&mut address, bytes) });
    }

    /// Runs a kernel of one thread to its end.
    fn run(&self, kernel: &CStr, mut argument: u64) -> c_int {
        let mut function = null_mut();
        let mut arguments = [(&raw mut argument).cast::<c_void>()];
        // SAFETY: there is a context, and both kernels take one number of 64 bits.
        unsafe {
            check(
                "cuModuleGetFunction",
                (self.function)(&mut function, self.module, kernel.as_ptr()),
            );
            let none = null_mut();
            let launched = (self.launch)(
                function,
                1,
                1,
                1,
                1,
                1,
                1,
                0,
                none,
                arguments.as_mut_ptr(),
                null_mut(),
            );
            check("cuLaunchKernel", launched);
            (self.synchronize)()
        }
    }
}

/// The time until `from_ns` of a period of the wall clock have passed.
fn until(period: Duration, from_ns: u64) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock that is set");
    let period_ns = period.as_nanos() as u64;
    let within_ns = (now.as_nanos() % period.as_nanos()) as u64;
    Duration::from_nanos((from_ns + period_ns - within_ns) % period_ns)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["spin", milliseconds, period_ms, from, percent, mib] => {
            let number = |word: &str| word.parse::<u64>().expect("a number");
            let cuda = Cuda::open();
            cuda.hold((number(mib) << 20) as usize);
            let period = Duration::from_millis(number(period_ms));
            let part_ns = |percent| period.as_nanos() as u64 * number(percent) / 100;
            let busy_ns = part_ns(percent);
            let begin = Instant::now();
            // Those of several processes are side by side.
            let mut turn = begin + until(period, part_ns(from));
            thread::sleep(turn - begin);
            while begin.elapsed() < Duration::from_millis(number(milliseconds)) {
                check("spin", cuda.run(c"spin", busy_ns));
                turn += period;
                thread::sleep(turn.saturating_duration_since(Instant::now()));
            }
        }
        ["crash"] => {
            println!("the kernel ended with CUDA's error {}", Cuda::open().run(c"crash", 16))
        }
        _ => panic!("spin MS PERIOD_MS FROM PERCENT MIB, or crash"),
    }
}
