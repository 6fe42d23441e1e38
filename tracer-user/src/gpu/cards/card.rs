//! One card of /sys/class/drm: what it is, and what its files tell.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    files::{numbered, read_bytes, read_number, read_text, value_of},
    kfd::{KfdNode, render_minor},
    metrics::energy_millijoules,
};
use crate::gpu::reading::{Busy, Device, DeviceReading, ppm};

/// Characters of a model's name, as NVIDIA's have at most.
const LONGEST_MODEL: usize = 96;

/// A card that programs can compute or draw on.
pub struct Card {
    /// What does not change about it.
    pub device: Arc<Device>,
    /// PCI address, as fdinfo names it; empty for a device of another bus.
    pub address: String,
    /// Number of its render node.
    pub render_minor: u32,
    /// As AMD's compute driver knows it.
    pub node: Option<KfdNode>,
    /// `cardN` and its device's folder.
    folder: PathBuf,
    files: PathBuf,
    hwmon: Option<PathBuf>,
}

/// A GPU that the kernel's files tell of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCard {
    /// `amd`, `intel`, else the kernel's driver.
    pub vendor: String,
    /// Number and model.
    pub name: String,
    /// It sleeps, and is not read, since that could wake it.
    pub is_asleep: bool,
    /// What it does not tell, a sentence each.
    pub lacking: Vec<String>,
}

/// A card before it has its number among its maker's.
pub struct NewCard {
    /// `N` of `cardN`.
    pub card: u32,
    folder: PathBuf,
    uevent: String,
    render_minor: u32,
}

impl NewCard {
    /// The cards that have a render node, but for NVIDIA's, of which its library tells more.
    pub fn all(root: &Path) -> Vec<Self> {
        let found = |(card, folder): (u32, PathBuf)| {
            let uevent = read_text(&folder.join("device/uevent"))?;
            let render_minor = render_minor(&folder.join("device"))?;
            let found = Self { card, folder, uevent, render_minor };
            (found.driver() != "nvidia").then_some(found)
        };
        numbered(&root.join("sys/class/drm"), "card").into_iter().filter_map(found).collect()
    }

    fn driver(&self) -> &str {
        value_of(&self.uevent, "DRIVER", '=').unwrap_or("unknown")
    }

    /// Vendor and device id of PCI: `1002`, `740F`.
    fn ids(&self) -> (&str, &str) {
        let ids = value_of(&self.uevent, "PCI_ID", '=').and_then(|ids| ids.split_once(':'));
        ids.unwrap_or_default()
    }

    /// Its maker: `amd`, `intel`, else the driver's name.
    pub fn vendor(&self) -> &str {
        match self.ids().0 {
            "1002" => "amd",
            "8086" => "intel",
            _ => self.driver(),
        }
    }

    /// Number of its render node.
    pub fn render_minor(&self) -> u32 {
        self.render_minor
    }

    /// The card, with its number among its maker's.
    pub fn open(self, index: u32, node: Option<KfdNode>) -> Card {
        let files = self.folder.join("device");
        let address = value_of(&self.uevent, "PCI_SLOT_NAME", '=').unwrap_or_default().to_owned();
        // As the maker's own tools write it.
        let unique = read_text(&files.join("unique_id")).map(|id| id.trim().to_owned());
        let unique = unique.filter(|id| is_plain(id) && id.bytes().any(|byte| byte != b'0'));
        let uuid = match unique {
            Some(id) => format!("GPU-{id}"),
            None if is_plain(&address) => format!("PCI-{address}"),
            None => format!("DRM-{}{}", self.driver(), self.render_minor),
        };
        let vendor = self.vendor().to_owned();
        let product = read_text(&files.join("product_name"));
        let product = product.map(|name| name.trim().chars().take(LONGEST_MODEL).collect());
        let model = product.filter(|name: &String| !name.is_empty()).unwrap_or_else(|| {
            let maker = match vendor.as_str() {
                "amd" => "AMD",
                "intel" => "Intel",
                other => other,
            };
            let id = self.ids().1.to_lowercase();
            if id.is_empty() { maker.to_owned() } else { format!("{maker} 0x{id}") }
        });
        let device = Device {
            index,
            uuid,
            model,
            vendor,
            memory_total_bytes: read_number(&files.join("mem_info_vram_total")),
            ..Device::default()
        };
        Card {
            device: Arc::new(device),
            address,
            render_minor: self.render_minor,
            node,
            hwmon: hwmon(&files),
            folder: self.folder,
            files,
        }
    }
}

/// The sensors of a whole device: i915 has some of its parts beside them, `i915_gt0`.
fn hwmon(files: &Path) -> Option<PathBuf> {
    let is_whole =
        |folder: &PathBuf| read_text(&folder.join("name")).is_none_or(|name| !name.contains("_gt"));
    let mut folders = numbered(&files.join("hwmon"), "hwmon").into_iter().map(|(_, folder)| folder);
    folders.rfind(is_whole)
}

/// Whether `text` is fit for a name: the kernel writes nothing else, but its files may be anything.
fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":.-_".contains(&byte);
    (1..=64).contains(&text.len()) && text.bytes().all(is_plain)
}

impl Card {
    /// Its number and model, as a note names it.
    pub fn name(&self) -> String {
        format!("GPU {} ({})", self.device.number(), self.device.model)
    }

    /// All but the processes. A device that sleeps is left asleep, and tells nothing.
    pub fn read(&self) -> DeviceReading {
        let device = Arc::clone(&self.device);
        if self.is_asleep() {
            return DeviceReading { device, ..DeviceReading::default() };
        }
        let number = |name: &str| read_number(&self.files.join(name));
        let sensor = |name: &str| read_number(&self.hwmon.as_ref()?.join(name));
        let busy = number("gpu_busy_percent")
            .and_then(ppm)
            .map(|sm_ppm| Busy { sm_ppm, memory_ppm: number("mem_busy_percent").and_then(ppm) });
        let microwatts = sensor("power1_average").or_else(|| sensor("power1_input"));
        DeviceReading {
            device,
            busy,
            memory_used_bytes: number("mem_info_vram_used"),
            power_milliwatts: microwatts.map(|microwatts| microwatts / 1_000),
            energy_millijoules: sensor("energy1_input")
                .map(|microjoules| microjoules / 1_000)
                .or_else(|| energy_millijoules(&read_bytes(&self.files.join("gpu_metrics"))?)),
            sm_clock_hz: sensor("freq1_input").or_else(|| self.frequency()),
            memory_clock_hz: sensor("freq2_input"),
            // From MI300 on the edge of the chip is hidden, and its hottest place is told.
            temperature_celsius: sensor("temp1_input")
                .or_else(|| sensor("temp2_input"))
                .map(|millidegrees| millidegrees / 1_000),
            ..DeviceReading::default()
        }
    }

    /// Of Intel's: i915 and xe keep it apart.
    fn frequency(&self) -> Option<u64> {
        let places = [
            self.folder.join("gt/gt0/rps_act_freq_mhz"),
            self.folder.join("gt_act_freq_mhz"),
            self.files.join("tile0/gt0/freq0/act_freq"),
        ];
        let megahertz = places.iter().find_map(|place| read_number(place));
        megahertz.and_then(|megahertz| megahertz.checked_mul(1_000_000))
    }

    /// It, as `doctor` tells of it.
    pub fn found(&self) -> FoundCard {
        let (is_asleep, lacking) = (self.is_asleep(), self.lacking());
        FoundCard { vendor: self.device.vendor.clone(), name: self.name(), is_asleep, lacking }
    }

    fn is_asleep(&self) -> bool {
        let status = read_text(&self.files.join("power/runtime_status"));
        status.is_some_and(|status| status.trim() == "suspended")
    }

    /// What it does not tell and its driver's cards do, a sentence each.
    fn lacking(&self) -> Vec<String> {
        if self.device.vendor != "amd" || self.is_asleep() {
            return Vec::new();
        }
        let read = self.read();
        let told = [
            ("utilisation", read.busy.is_some()),
            ("memory in use", read.memory_used_bytes.is_some()),
            ("power", read.power_milliwatts.is_some()),
            ("clock", read.sm_clock_hz.is_some()),
            ("temperature", read.temperature_celsius.is_some()),
            ("processes that compute", self.node.is_some()),
        ];
        let lacking = told.iter().filter(|(_, is_told)| !is_told);
        lacking.map(|(what, _)| format!("{} does not report its {what}", self.name())).collect()
    }
}
