#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (jobtrace_fuzz::target_named("proc_files").run)(data));
