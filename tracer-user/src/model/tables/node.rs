//! The tables of what a whole node counted: `node_net`, its network devices; `node_mount`, its clients of network file
//! systems.

use tracer_ebpf::measurement;

measurement! {
    /// `node_net`: the node's network devices.
    NODE_NET, NodeNet = "node_net", key "node_net", tags ["device"],
        "The node's network devices by their own counts in sysfs, RDMA included, as part of _system: Ethernet and the like by name, headers included; InfiniBand and Omni-Path by device and port (`mlx5_0/1`). Virtual devices (bridges, bonds, those of containers) are left out: what they carry a hardware device counts too, or it never leaves the node. Who sent what is unknown here: the counts are a job's own only while it is the only job on the node. A device that appears later is seen within ten seconds, or with the next interval, and counts from its second reading on. Only the agent writes it.";

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

measurement! {
    /// `node_mount`: what clients of network file systems asked of their servers.
    NODE_MOUNT, NodeMount = "node_mount", key "node_mount", tags ["fs", "mount", "op"],
        "Requests to file servers by the whole node, while one job's file operations were counted (`run --io`, `jobtrace io`): of all jobs and of the kernel itself, as the clients of NFS (/proc/PID/mountstats) and Lustre (llite's stats) count them. Those caused by the job are among them; where it is alone on the mount, all of them are. Of NFS, reads that the page cache answers are none, write-back is; Lustre's client counts what programs call, also what it answers itself, and its older versions tell besides what went to servers (`osc_read`, `osc_write`). `op` is the request's name there, in small letters; a Lustre mount that cannot be told from others of the same file system is empty.";

    counter ops: Count,
        "Requests that ended; on Lustre also what the client answered itself.";
    counter errors: Count,
        "Those that failed (NFS, Linux 5.3 on).";
    counter retransmits: Count,
        "Requests sent again, beyond once for each that ended (NFS).";
    counter timeouts: Count,
        "Requests that were not answered within the mount's `timeo` and its retransmits (NFS).";
    counter sent_bytes: Bytes,
        "Bytes sent, headers included (NFS); bytes written (Lustre).";
    counter received_bytes: Bytes,
        "Bytes received, headers included (NFS); bytes read (Lustre).";
    counter queue_ns: Nanoseconds,
        "Time before they were sent, all requests added up, in milliseconds (NFS).";
    counter round_trip_ns: Nanoseconds,
        "Time from sending to the answer, all requests added up, in milliseconds (NFS).";
    counter time_ns: Nanoseconds,
        "Time from the request's begin to its end, all requests added up: in milliseconds (NFS); in microseconds, for kinds of which the client keeps a time (Lustre).";
}
