//! The architectures whose kernels are booted: what the machine, the compiler and the packages of each
//! are called. It starts and fetches nothing.

use crate::packages::{Tool, tool};
use std::env::consts;
use std::path::Path;
use std::process::Command;

/// An architecture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Arch {
    /// PCs and most servers.
    #[default]
    #[value(name = "x86-64")]
    X86,
    /// 64-bit ARM servers.
    #[value(name = "arm64")]
    Arm,
}

/// What is called otherwise on each.
struct Names {
    own: &'static str,
    debian: &'static str,
    machine: &'static str,
    document: &'static str,
    port: &'static str,
    console: &'static str,
    qemu: Tool,
    /// The machine that qemu emulates, and its port to the host.
    machine_options: &'static str,
    /// What builds programs for it elsewhere. Other families than Debian's name these so where they have
    /// them at all.
    cross: [Tool; 2],
}

const X86: Names = Names {
    own: "x86-64",
    debian: "amd64",
    machine: "x86_64",
    document: "docs/KERNELS.md",
    port: "/dev/ttyS1",
    console: "ttyS0",
    qemu: tool("qemu-system-x86_64", ["qemu-system-x86", "qemu-system-x86-core", "qemu-x86"]),
    // All that qemu emulates but cmpxchg16b: qemu 7.2 errs where it faults or is interrupted, which Linux 6.12 met in
    // its memory allocator at each attempt. Kernels do without it.
    machine_options: "-machine q35 -cpu max,-cx16 -serial stdio",
    cross: [
        tool(
            "x86_64-linux-gnu-gcc",
            ["gcc-x86-64-linux-gnu", "gcc-x86_64-linux-gnu", "cross-x86_64-gcc14"],
        ),
        tool(
            "/usr/x86_64-linux-gnu/lib/crt1.o",
            ["libc6-dev-amd64-cross", "glibc-devel", "cross-x86_64-glibc-devel"],
        ),
    ],
};

const ARM: Names = Names {
    own: "arm64",
    debian: "arm64",
    machine: "aarch64",
    document: "docs/KERNELS-arm64.md",
    // The machine's own port is ttyAMA0: the second one is a PCI card.
    port: "/dev/ttyS0",
    console: "ttyAMA0",
    qemu: tool("qemu-system-aarch64", ["qemu-system-arm", "qemu-system-aarch64-core", "qemu-arm"]),
    // A server's CPU: with atomic instructions of its own, and without the pointer authentication of later
    // ones, which is slow to emulate.
    machine_options: "-machine virt,gic-version=3 -cpu neoverse-n1 \
                      -chardev stdio,id=guest -device pci-serial,chardev=guest",
    cross: [
        tool(
            "aarch64-linux-gnu-gcc",
            ["gcc-aarch64-linux-gnu", "gcc-aarch64-linux-gnu", "cross-aarch64-gcc14"],
        ),
        tool(
            "/usr/aarch64-linux-gnu/lib/crt1.o",
            ["libc6-dev-arm64-cross", "glibc-devel", "cross-aarch64-glibc-devel"],
        ),
    ],
};

impl Arch {
    /// Both.
    pub const ALL: [Self; 2] = [Self::X86, Self::Arm];

    fn names(self) -> &'static Names {
        match self {
            Self::X86 => &X86,
            Self::Arm => &ARM,
        }
    }

    /// As `--arch` has it.
    pub fn name(self) -> &'static str {
        self.names().own
    }

    /// Debian's name of it.
    pub fn debian(self) -> &'static str {
        self.names().debian
    }

    /// The compiler's and the kernel's (`uname -m`).
    pub fn machine(self) -> &'static str {
        self.names().machine
    }

    /// What Rust calls programs of it.
    pub fn triple(self) -> String {
        format!("{}-unknown-linux-gnu", self.machine())
    }

    /// A program of the cross compiler, such as `gcc` or `strip`.
    pub fn cross(self, program: &str) -> String {
        format!("{}-linux-gnu-{program}", self.machine())
    }

    /// Whether this program runs on it.
    pub fn is_own(self) -> bool {
        consts::ARCH == self.machine()
    }

    /// What the chore runs for it, `xz` to unpack modules; `strip` is in the compiler's package.
    pub fn tools(self) -> Vec<Tool> {
        let Names { qemu, cross, .. } = self.names();
        let mut all = vec![*qemu, tool("xz", ["xz-utils", "xz", "xz"])];
        if !self.is_own() {
            all.extend(cross);
        }
        all
    }

    /// The document that its table is in, below the root.
    pub fn document(self) -> &'static str {
        self.names().document
    }

    /// The file of the guest's serial port to the host.
    pub fn port(self) -> &'static str {
        self.names().port
    }

    /// The kernel's name of the port of its console.
    pub fn console(self) -> &'static str {
        self.names().console
    }

    /// qemu without KVM, the machine and its two ports: the console's lines go to a file, the guest's to
    /// standard output.
    pub fn qemu(self, console: &Path) -> Command {
        let mut command = Command::new(self.names().qemu.program);
        command.args(["-accel", "tcg,thread=multi"]);
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        // The console's port is the first.
        command.args(["-serial", &format!("file:{}", console.display())]);
        command.args(self.names().machine_options.split_whitespace());
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_architecture_takes_a_compiler_and_a_c_library() {
        for arch in Arch::ALL {
            let programs: Vec<_> = arch.tools().iter().map(|tool| tool.program).collect();
            let compiler = arch.cross("gcc");
            assert_eq!(programs.contains(&&*compiler), !arch.is_own(), "{programs:?}");
            assert!(programs[0].starts_with("qemu-system-"), "{programs:?}");
            assert_eq!(programs.len(), if arch.is_own() { 2 } else { 4 });
        }
    }

    #[test]
    fn console_and_guest_have_ports_of_their_own() {
        for arch in Arch::ALL {
            assert_ne!(arch.port(), format!("/dev/{}", arch.console()));
            let words = format!("{:?}", arch.qemu(Path::new("/tmp/c")));
            assert_eq!(words.matches("file:/tmp/c").count(), 1, "{words}");
            assert_eq!(words.matches("stdio").count(), 1, "{words}");
        }
    }
}
