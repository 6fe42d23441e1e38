//! What the node's network devices count, from sysfs. Refuses to guess whose it is.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::model::{
    group::Group,
    tables::{NODE_NET, NodeNet},
};

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

/// One group for each device in sysfs, cumulative since the device began.
pub fn read(sysfs: &Path) -> Vec<Group> {
    let network = entries(&sysfs.join("class/net"));
    // One of hardware has it; of a virtual one, what it carries is counted by another.
    let network = network.into_iter().filter(|(_, device)| device.join("device").exists());
    let network = network.map(|(name, device)| NETWORK.read(name, &device.join("statistics")));
    let infiniband = entries(&sysfs.join("class/infiniband"));
    let ports = infiniband.into_iter().flat_map(|(name, device)| {
        let ports = entries(&device.join("ports")).into_iter();
        ports.map(move |(port, at)| INFINIBAND.read(format!("{name}/{port}"), &at.join("counters")))
    });
    let is_known = |group: &Group| group.values.iter().any(Option::is_some);
    network.chain(ports).filter(is_known).collect()
}

/// Leaves out of `interval` the devices that are not in `before`: what they counted until they came here (from
/// a container, say) is of no interval.
pub fn leave_out_new(interval: &mut Vec<Group>, before: &[Group]) {
    let is_known = |group: &Group| before.iter().any(|known| known.same_series(group));
    interval.retain(|group| !group.is(&NODE_NET) || is_known(group));
}

impl Counters {
    fn read(&self, name: String, folder: &Path) -> Group {
        let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok();
        let bytes = |file| Some(u64::saturating_mul(number(file)?, self.unit_bytes));
        let sum = |files: &[&str]| files.iter().map(|file| number(file)).sum::<Option<u64>>();
        let mut group = Group::unknown(&NODE_NET, vec![name]);
        group.set(NodeNet::sent_bytes, bytes(self.sent));
        group.set(NodeNet::sent_packets, number(self.sent_packets));
        group.set(NodeNet::received_bytes, bytes(self.received));
        group.set(NodeNet::received_packets, number(self.received_packets));
        group.set(NodeNet::errors, sum(self.errors));
        group.set(NodeNet::dropped, sum(self.dropped));
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
        let groups = read(sysfs.path());
        let names: Vec<_> = groups.iter().map(|group| group.tags[0].as_str()).collect();
        assert_eq!(names, ["eth0", "mlx5_0/1"]);
        assert_eq!(groups[0].number(NodeNet::sent_bytes), Some(7));
        assert_eq!(groups[0].number(NodeNet::received_packets), Some(2));
        assert_eq!(groups[0].number(NodeNet::errors), None, "one of the two is unknown");
        assert_eq!(groups[1].number(NodeNet::sent_bytes), Some(400));
        assert_eq!(groups[1].number(NodeNet::received_bytes), Some(u64::MAX));
        assert!(read(&sysfs.path().join("nothing")).is_empty());
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
