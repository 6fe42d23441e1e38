//! What is known of qemu's own faults, by the words that a kernel leaves on its console.

use super::arch::Arch;

/// Words of the console by which a crash of an x86-64 machine is the emulator's, seen in qemu 7.2 with Linux 6.12 and
/// 7.2: a CPU runs into the breakpoint by which the kernel patches its own code (as attaching to a tracepoint does)
/// after it is gone again.
const EMULATORS: &str = "Oops: int3";
/// Words of the console of a machine whose CPUs were stuck in the kernel. Seen once in Linux 5.10, both CPUs at
/// once and answering timers, as where one waits for an interrupt from the other that the emulator lost: one more
/// attempt is fair. Programs of ours that lock up would do so again.
pub const STUCK: &str = "softlockup: hung tasks";

/// Whether the kernel whose console says `text` crashed where qemu is known to emulate wrongly.
pub fn erred(arch: Arch, text: &str) -> bool {
    arch == Arch::X86
        && text.contains("Kernel panic")
        && (text.contains(EMULATORS) || is_stuck_at_patch(text))
}

/// Whether a CPU was stuck at an instruction that the kernel patches: the call at a function's begin, or the jump of
/// a static branch. It runs into the breakpoint of the patching, as in [`EMULATORS`], and the kernel, which sees that
/// it is gone, has it try again for ever.
fn is_stuck_at_patch(console: &str) -> bool {
    let mut lines = console.lines();
    let Some(place) = lines.find(|line| line.contains("RIP: 0010:")) else { return false };
    let code = lines.next().and_then(|line| line.split_once("Code: ")).map_or("", |(_, code)| code);
    let is_call = place.contains("+0x0/") && code.contains("<e8>");
    console.contains(STUCK) && (is_call || code.contains("<e9>") || code.contains("<0f> 1f 44 00"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_is_stuck_at_a_patched_instruction_is_the_emulators() {
        let is_patch = |place: &str, code: &str| {
            is_stuck_at_patch(&format!(
                "[   88.5] Kernel panic - not syncing: softlockup: hung tasks\n\
                 [   88.5] RIP: 0010:{place}\n[   88.5] Code: 00 00 {code} 54 76 03 53\n\
                 [   88.5]  ? inet_sk_set_state+0x0/0x60\n"
            ))
        };
        assert!(is_patch("inet_recvmsg+0x0/0x120", "<e8> bb"));
        assert!(!is_patch("inet_recvmsg+0x5/0x120", "<e8> bb"));
        assert!(is_patch("handle_mm_fault+0x73e/0x1c00", "<e9> 30"));
        assert!(is_patch("handle_mm_fault+0x73e/0x1c00", "<0f> 1f 44 00"));
        assert!(!is_patch("native_queued_spin_lock+0x0/0x120", "<f3> 90"));
    }
}
