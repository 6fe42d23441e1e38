//! What the node's network devices count, from sysfs. Refuses to guess whose it is.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    base::kept::KeptFile,
    model::{
        group::Group,
        tables::{NODE_NET, NodeNet},
    },
};

/// How long a list of the devices is good for, and their open files, which stay with a device that gets another name. The
/// node may have hundreds of virtual ones. A little less than ten seconds, by which the intervals often come.
const LIST_NS: u64 = 9_000_000_000;

/// InfiniBand counts data in words of so many bytes.
const WORD_BYTES: u64 = 4;

/// Where the counters of one kind of device lie, and what one of `sent_bytes` and `received_bytes` is.
struct Counters {
    unit_bytes: u64,
    sent: &'static str,
    sent_packets: &'static str,
    received: &'static str,
    received_packets: &'static str,
    errors: &'static [&'static str],
    dropped: &'static [&'static str],
}

const NETWORK: Counters = Counters {
    unit_bytes: 1,
    sent: "tx_bytes",
    sent_packets: "tx_packets",
    received: "rx_bytes",
    received_packets: "rx_packets",
    errors: &["tx_errors", "rx_errors"],
    dropped: &["tx_dropped", "rx_dropped"],
};

const INFINIBAND: Counters = Counters {
    unit_bytes: WORD_BYTES,
    sent: "port_xmit_data",
    sent_packets: "port_xmit_packets",
    received: "port_rcv_data",
    received_packets: "port_rcv_packets",
    errors: &["port_rcv_errors"],
    dropped: &["port_xmit_discards"],
};

/// The devices, whose files stay open.
pub struct NetDevices {
    sysfs: PathBuf,
    devices: Vec<Device>,
    /// When they were listed, CLOCK_MONOTONIC.
    listed_ns: Option<u64>,
}

/// One of them.
struct Device {
    name: String,
    counters: &'static Counters,
    folder: PathBuf,
    files: BTreeMap<&'static str, KeptFile>,
}

impl NetDevices {
    /// Those that `sysfs` shows.
    pub fn new(sysfs: PathBuf) -> Self {
        Self { sysfs, devices: Vec::new(), listed_ns: None }
    }

    /// One group for each device that is there at `now_ns` (CLOCK_MONOTONIC), cumulative since the device began. One that
    /// came is seen once [`LIST_NS`] have passed.
    pub fn read(&mut self, now_ns: u64) -> Vec<Group> {
        if self.listed_ns.is_none_or(|listed_ns| now_ns.saturating_sub(listed_ns) >= LIST_NS) {
            self.listed_ns = Some(now_ns);
            self.list();
        }
        let is_known = |group: &Group| group.values.iter().any(Option::is_some);
        self.devices.iter_mut().map(Device::read).filter(is_known).collect()
    }

    fn list(&mut self) {
        let network = entries(&self.sysfs.join("class/net"));
        // One of hardware has it; of a virtual one, what it carries is counted by another.
        let network = network.into_iter().filter(|(_, device)| device.join("device").exists());
        let network = network.map(|(name, at)| (&NETWORK, name, at.join("statistics")));
        let infiniband = entries(&self.sysfs.join("class/infiniband"));
        let ports = infiniband.into_iter().flat_map(|(name, device)| {
            let ports = entries(&device.join("ports")).into_iter();
            ports
                .map(move |(port, at)| (&INFINIBAND, format!("{name}/{port}"), at.join("counters")))
        });
        let device =
            |(counters, name, folder)| Device { name, counters, folder, files: BTreeMap::new() };
        self.devices = network.chain(ports).map(device).collect();
    }
}

/// Leaves out of `interval` the devices that are not in `before`: what they counted until they came here (from
/// a container, say) is of no interval.
pub fn leave_out_new(interval: &mut Vec<Group>, before: &[Group]) {
    let is_known = |group: &Group| before.iter().any(|known| known.same_series(group));
    interval.retain(|group| !group.is(&NODE_NET) || is_known(group));
}

impl Device {
    fn read(&mut self) -> Group {
        let Counters {
            unit_bytes,
            sent,
            sent_packets,
            received,
            received_packets,
            errors,
            dropped,
        } = self.counters;
        let mut group = Group::unknown(&NODE_NET, vec![self.name.clone()]);
        let mut number = |name: &'static str| {
            let file = self.files.entry(name);
            let file = file.or_insert_with(|| KeptFile::new(self.folder.as_path(), name));
            file.read(|text| text.trim().parse().ok())
        };
        let bytes = |words: Option<u64>| Some(words?.saturating_mul(*unit_bytes));
        group.set(NodeNet::sent_bytes, bytes(number(sent)));
        group.set(NodeNet::sent_packets, number(sent_packets));
        group.set(NodeNet::received_bytes, bytes(number(received)));
        group.set(NodeNet::received_packets, number(received_packets));
        let mut sum =
            |names: &[&'static str]| names.iter().map(|name| number(name)).sum::<Option<u64>>();
        group.set(NodeNet::errors, sum(errors));
        group.set(NodeNet::dropped, sum(dropped));
        group
    }
}

/// Names and places of what lies in `folder`, in the order of the names; nothing where there is none.
fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named =
        entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
    let mut named: Vec<_> = named.collect();
    named.sort();
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tables::SELF;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).unwrap();
        for (file, text) in files {
            fs::write(folder.join(file), text).unwrap();
        }
    }

    #[test]
    fn hardware_is_read_in_bytes_and_virtual_devices_are_left_out() {
        let sysfs = tempfile::tempdir().unwrap();
        let class = sysfs.path().join("class");
        write(
            &class.join("net/eth0/statistics"),
            &[
                ("tx_bytes", "7\n"),
                ("rx_bytes", "9\n"),
                ("rx_packets", "2\n"),
                ("tx_errors", "1\n"),
            ],
        );
        write(&class.join("net/eth0/device"), &[]);
        write(&class.join("net/veth1/statistics"), &[("tx_bytes", "7\n")]);
        write(
            &class.join("infiniband/mlx5_0/ports/1/counters"),
            &[("port_xmit_data", "100\n"), ("port_rcv_data", "18446744073709551615\n")],
        );
        write(&class.join("infiniband/mlx5_1/ports/1/counters"), &[]);
        let mut devices = NetDevices::new(sysfs.path().into());
        let groups = devices.read(0);
        let names: Vec<_> = groups.iter().map(|group| group.tags[0].as_str()).collect();
        assert_eq!(names, ["eth0", "mlx5_0/1"]);
        assert_eq!(groups[0].number(NodeNet::sent_bytes), Some(7));
        assert_eq!(groups[0].number(NodeNet::received_packets), Some(2));
        assert_eq!(groups[0].number(NodeNet::errors), None, "one of the two is unknown");
        assert_eq!(groups[1].number(NodeNet::sent_bytes), Some(400));
        assert_eq!(groups[1].number(NodeNet::received_bytes), Some(u64::MAX));
        assert!(NetDevices::new(sysfs.path().join("nothing")).read(0).is_empty());
        // It counts on; another comes, and it goes: its name is the other's.
        write(&class.join("net/eth0/statistics"), &[("tx_bytes", "8\n")]);
        assert_eq!(devices.read(1)[0].number(NodeNet::sent_bytes), Some(8));
        write(&class.join("net/eth1/statistics"), &[("tx_bytes", "1\n")]);
        write(&class.join("net/eth1/device"), &[]);
        assert_eq!(devices.read(LIST_NS - 1).len(), 2, "the list is fresh");
        let named = |name| class.join("net").join(name);
        fs::rename(named("eth0"), named("eth2")).unwrap();
        fs::rename(named("eth1"), named("eth0")).unwrap();
        let groups = devices.read(LIST_NS);
        let told = |group: &Group| (group.tags[0].clone(), group.number(NodeNet::sent_bytes));
        let told = groups[..2].iter().map(told).collect::<Vec<_>>();
        assert_eq!(told, [("eth0".into(), Some(1)), ("eth2".into(), Some(8))]);
        fs::remove_dir_all(named("eth2")).unwrap();
        let groups = devices.read(2 * LIST_NS);
        let names: Vec<_> = groups.iter().map(|group| group.tags[0].as_str()).collect();
        assert_eq!(names, ["eth0", "mlx5_0/1"]);
    }

    #[test]
    fn a_device_counts_from_its_second_reading_on() {
        let device = |name: &str, bytes: u64| {
            let mut group = Group::unknown(&NODE_NET, vec![name.into()]);
            group.set(NodeNet::sent_bytes, bytes);
            group
        };
        let own = Group::unknown(&SELF, Vec::new());
        let before = [device("eth0", 5), own.clone()];
        let mut interval = vec![device("eth0", 2), device("eth1", 7000), own.clone()];
        leave_out_new(&mut interval, &before);
        assert_eq!(interval, [device("eth0", 2), own]);
    }
}
