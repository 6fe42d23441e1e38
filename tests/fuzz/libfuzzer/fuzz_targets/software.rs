#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| (jobtrace_fuzz::target_named("software").run)(data));
