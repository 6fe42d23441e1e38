//! The table of `node_net`: what the node's network devices counted.

use tracer_ebpf::measurement;

measurement! {
    /// `node_net`: the node's network devices.
    NODE_NET, NodeNet = "node_net", key "node_net", tags ["device"],
        "The node's network devices as they count themselves, RDMA included, in _system: Ethernet and the like by name, with all headers; InfiniBand and Omni-Path by device and port (`mlx5_0/1`), by sysfs. Virtual devices (bridges, bonds, those of containers) are left out: what they carry is the hardware's too, or nobody's. Who sent what is not known here: it is a job's own share only while that job is the only one on the node. Only of the agent.";

    counter sent_bytes: Bytes,
        "Bytes sent (statistics/tx_bytes; InfiniBand: port_xmit_data, which counts words of 4 bytes).";
    counter sent_packets: Count,
        "Packets sent (statistics/tx_packets; port_xmit_packets).";
    counter received_bytes: Bytes,
        "Bytes received (statistics/rx_bytes; InfiniBand: port_rcv_data, which counts words of 4 bytes).";
    counter received_packets: Count,
        "Packets received (statistics/rx_packets; port_rcv_packets).";
    counter errors: Count,
        "Packets that were damaged (statistics/tx_errors and rx_errors; port_rcv_errors).";
    counter dropped: Count,
        "Packets thrown away, mostly for lack of room (statistics/tx_dropped and rx_dropped; port_xmit_discards).";
}
