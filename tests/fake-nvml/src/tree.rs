//! A folder with the files of sys and proc that tell of AMD's, Intel's and others' GPUs.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// A tree for one test, gone with it.
pub struct Tree(TempDir);

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// An empty one.
    pub fn new() -> Self {
        Self(TempDir::new().expect("a folder for the test"))
    }

    /// What stands for `/`.
    pub fn root(&self) -> &Path {
        self.0.path()
    }

    /// Where `path` lies in it.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    /// Puts a file, whole at once.
    pub fn put(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(path);
        let folder = path.parent().expect("a file lies in a folder");
        fs::create_dir_all(folder).expect("the folder can be made");
        let new = folder.join(".new");
        fs::write(&new, bytes).and_then(|()| fs::rename(new, path)).expect("the file can be put");
    }

    /// Takes a file or a folder away.
    pub fn take(&self, path: &str) {
        let path = self.path(path);
        match path.is_dir() {
            true => fs::remove_dir_all(path),
            false => fs::remove_file(path),
        }
        .expect("it can be taken away");
    }

    /// A card with a render node, on the PCI bus.
    pub fn card(&self, card: u32, driver: &str, id: &str, address: &str, render: u32) {
        let device = format!("sys/class/drm/card{card}/device");
        let uevent =
            format!("DRIVER={driver}\nPCI_CLASS=30000\nPCI_ID={id}\nPCI_SLOT_NAME={address}\n");
        fs::create_dir_all(self.path(&format!("{device}/drm/renderD{render}"))).expect("a folder");
        self.put(&format!("{device}/uevent"), uevent);
    }

    /// One of AMD's compute cards, busy, with a node of the compute driver.
    pub fn amd(&self, card: u32, unique_id: &str, gpu_id: u32) {
        let render = 128 + card;
        let device = format!("sys/class/drm/card{card}/device");
        for (name, text) in [
            ("gpu_busy_percent", "73\n"),
            ("mem_busy_percent", "21\n"),
            ("mem_info_vram_used", "9000000000\n"),
            ("mem_info_vram_total", "68702699520\n"),
            ("unique_id", &format!("{unique_id}\n")),
            ("product_name", "AMD Instinct MI210\n"),
            ("power/runtime_status", "active\n"),
            ("hwmon/hwmon4/power1_average", "231000000\n"),
            ("hwmon/hwmon4/freq1_input", "1700000000\n"),
            ("hwmon/hwmon4/freq2_input", "1600000000\n"),
            ("hwmon/hwmon4/temp1_input", "58000\n"),
        ] {
            self.put(&format!("{device}/{name}"), text);
        }
        let nodes = "sys/class/kfd/kfd/topology/nodes";
        self.put(&format!("{nodes}/0/properties"), "cpu_cores_count 64\nsimd_count 0\n");
        self.put(&format!("{nodes}/0/gpu_id"), "0\n");
        let node = format!("{nodes}/{}", card + 1);
        let text = format!("simd_count 416\nsimd_per_cu 4\ndrm_render_minor {render}\n");
        self.put(&format!("{node}/properties"), text);
        self.put(&format!("{node}/gpu_id"), format!("{gpu_id}\n"));
        // What makes it a card comes last: nobody sees half of one.
        self.card(card, "amdgpu", "1002:740F", &format!("0000:{card:02x}:00.0"), render);
    }

    /// A process that AMD's compute driver knows, on one card.
    pub fn computes(&self, pid: u32, gpu_id: u32, vram: u64, compute_units: u64) {
        let process = format!("sys/class/kfd/kfd/proc/{pid}");
        self.put(&format!("{process}/vram_{gpu_id}"), format!("{vram}\n"));
        let occupancy = format!("{process}/stats_{gpu_id}/cu_occupancy");
        self.put(&occupancy, format!("{compute_units}\n"));
    }

    /// A process has `target` open as `descriptor`, of which the kernel tells `info`.
    pub fn opens(&self, pid: u32, descriptor: u32, target: &str, info: &str) {
        let process = format!("proc/{pid}");
        self.put(&format!("{process}/fdinfo/{descriptor}"), info);
        let link = self.path(&format!("{process}/fd/{descriptor}"));
        fs::create_dir_all(link.parent().expect("a folder")).expect("the folder can be made");
        if link.symlink_metadata().is_err() {
            symlink(target, link).expect("the link can be made");
        }
    }
}
