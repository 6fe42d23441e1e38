//! The architectures whose kernels are booted: what the machine, the compiler and the packages of each
//! are called. It starts and fetches nothing.

use crate::packages::Tool;
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

/// Unpacks modules.
const XZ: Tool = Tool { program: "xz", apt: "xz-utils", dnf: "xz", zypper: "xz" };
const QEMU_X86: Tool = Tool {
    program: "qemu-system-x86_64",
    apt: "qemu-system-x86",
    dnf: "qemu-system-x86-core",
    zypper: "qemu-x86",
};
const QEMU_ARM: Tool = Tool {
    program: "qemu-system-aarch64",
    apt: "qemu-system-arm",
    dnf: "qemu-system-aarch64-core",
    zypper: "qemu-arm",
};
/// What builds programs for the other architecture. Other families than Debian's name these so where
/// they have them at all.
const CROSS_X86: [Tool; 2] = [
    Tool {
        program: "x86_64-linux-gnu-gcc",
        apt: "gcc-x86-64-linux-gnu",
        dnf: "gcc-x86_64-linux-gnu",
        zypper: "cross-x86_64-gcc14",
    },
    Tool {
        program: "/usr/x86_64-linux-gnu/lib/crt1.o",
        apt: "libc6-dev-amd64-cross",
        dnf: "glibc-devel",
        zypper: "cross-x86_64-glibc-devel",
    },
];
const CROSS_ARM: [Tool; 2] = [
    Tool {
        program: "aarch64-linux-gnu-gcc",
        apt: "gcc-aarch64-linux-gnu",
        dnf: "gcc-aarch64-linux-gnu",
        zypper: "cross-aarch64-gcc14",
    },
    Tool {
        program: "/usr/aarch64-linux-gnu/lib/crt1.o",
        apt: "libc6-dev-arm64-cross",
        dnf: "glibc-devel",
        zypper: "cross-aarch64-glibc-devel",
    },
];

impl Arch {
    /// Both.
    pub const ALL: [Self; 2] = [Self::X86, Self::Arm];

    /// As `--arch` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86 => "x86-64",
            Self::Arm => "arm64",
        }
    }

    /// Debian's name of it.
    pub fn debian(self) -> &'static str {
        match self {
            Self::X86 => "amd64",
            Self::Arm => "arm64",
        }
    }

    /// The compiler's and the kernel's (`uname -m`).
    pub fn machine(self) -> &'static str {
        match self {
            Self::X86 => "x86_64",
            Self::Arm => "aarch64",
        }
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

    /// What the chore runs for it; `strip` is in the compiler's package.
    pub fn tools(self) -> Vec<Tool> {
        let (qemu, cross) = match self {
            Self::X86 => (QEMU_X86, CROSS_X86),
            Self::Arm => (QEMU_ARM, CROSS_ARM),
        };
        let mut all = vec![qemu, XZ];
        if !self.is_own() {
            all.extend(cross);
        }
        all
    }

    /// The document that its table is in, below the root.
    pub fn document(self) -> &'static str {
        match self {
            Self::X86 => "docs/KERNELS.md",
            Self::Arm => "docs/KERNELS-arm64.md",
        }
    }

    /// The file of the guest's serial port to the host.
    pub fn port(self) -> &'static str {
        match self {
            Self::X86 => "/dev/ttyS1",
            // The machine's own port is ttyAMA0: the second one is a PCI card.
            Self::Arm => "/dev/ttyS0",
        }
    }

    /// The kernel's name of the port of its console.
    pub fn console(self) -> &'static str {
        match self {
            Self::X86 => "ttyS0",
            Self::Arm => "ttyAMA0",
        }
    }

    /// qemu without KVM, the machine and its two ports: the console's lines go to a file, the guest's to
    /// standard output.
    pub fn qemu(self, console: &Path) -> Command {
        let (program, machine) = match self {
            Self::X86 => (QEMU_X86.program, ["-machine", "q35", "-cpu", "max"]),
            // A server's CPU: with atomic instructions of its own, and without the pointer
            // authentication of later ones, which is slow to emulate.
            Self::Arm => {
                (QEMU_ARM.program, ["-machine", "virt,gic-version=3", "-cpu", "neoverse-n1"])
            }
        };
        let mut command = Command::new(program);
        command.args(["-accel", "tcg,thread=multi"]).args(machine);
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        command.args(["-serial", &format!("file:{}", console.display())]);
        match self {
            Self::X86 => command.args(["-serial", "stdio"]),
            Self::Arm => {
                command.args(["-chardev", "stdio,id=guest", "-device", "pci-serial,chardev=guest"])
            }
        };
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
