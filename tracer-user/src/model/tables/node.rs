//! The table of `node_net`: what the node's network devices counted.

use tracer_ebpf::measurement;

measurement! {
    /// `node_net`: the node's network devices.
    NODE_NET, NodeNet = "node_net", key "node_net", tags ["device"],
        "The node's network devices by their own counts in sysfs, RDMA included, as part of _system: Ethernet and the like by name, headers included; InfiniBand and Omni-Path by device and port (`mlx5_0/1`). Virtual devices (bridges, bonds, those of containers) are left out: what they carry a hardware device counts too, or it never leaves the node. Who sent what is unknown here: the counts are a job's own only while it is the only job on the node. A device that appears later counts from its second reading on. Only the agent writes it.";

    counter sent_bytes: Bytes,
        "Bytes sent (statistics/tx_bytes; InfiniBand: port_xmit_data, which counts words of 4 bytes).";
    counter sent_packets: Count,
        "Packets sent (statistics/tx_packets; port_xmit_packets).";
    counter received_bytes: Bytes,
        "Bytes received (statistics/rx_bytes; InfiniBand: port_rcv_data, which counts words of 4 bytes).";
    counter received_packets: Count,
        "Packets received (statistics/rx_packets; port_rcv_packets).";
    counter errors: Count,
        "Packets with errors (statistics/tx_errors and rx_errors; port_rcv_errors).";
    counter dropped: Count,
        "Packets dropped, mostly for lack of room (statistics/tx_dropped and rx_dropped; port_xmit_discards).";
}
