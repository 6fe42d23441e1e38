//! Hosts of every kind, by what their /proc says.

use super::*;

/// Number, mount and own directory of each hierarchy found, v2 first.
fn seen(mountinfo: &str, own: &str) -> Vec<(u32, String, String, String)> {
    let found = Hierarchies::parse(mountinfo, own);
    let all = found.v2.iter().chain(&found.v1);
    let text = |path: &Path| path.display().to_string();
    all.map(|h| (h.number, h.controllers.join(","), text(&h.mount), text(&h.own))).collect()
}

fn row(number: u32, controllers: &str, mount: &str, own: &str) -> (u32, String, String, String) {
    (number, controllers.into(), mount.into(), own.into())
}

#[test]
fn pure_v2_under_systemd() {
    let mountinfo = "\
22 1 253:0 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
24 22 0:21 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
31 24 0:27 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate
";
    let own = "0::/user.slice/user-1000.slice/session-3.scope\n";
    let below = "/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope";
    assert_eq!(seen(mountinfo, own), [row(0, "", "/sys/fs/cgroup", below)]);
}

#[test]
fn pure_v1_with_controllers_that_share_a_hierarchy() {
    let mountinfo = "\
30 23 0:26 / /sys/fs/cgroup ro,nosuid shared:8 - tmpfs tmpfs ro,mode=755
31 30 0:27 / /sys/fs/cgroup/systemd rw,nosuid shared:9 - cgroup cgroup rw,xattr,name=systemd
35 30 0:31 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:12 - cgroup cgroup rw,cpu,cpuacct
36 30 0:32 / /sys/fs/cgroup/memory rw,nosuid shared:13 - cgroup cgroup rw,memory
";
    let own = "\
11:memory:/slurm/uid_0/job_9
3:cpu,cpuacct:/slurm/uid_0/job_9
1:name=systemd:/system.slice/slurmd.service
";
    let expected = [
        row(
            3,
            "cpu,cpuacct",
            "/sys/fs/cgroup/cpu,cpuacct",
            "/sys/fs/cgroup/cpu,cpuacct/slurm/uid_0/job_9",
        ),
        row(11, "memory", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/slurm/uid_0/job_9"),
    ];
    assert_eq!(seen(mountinfo, own), expected);
    let found = Hierarchies::parse(mountinfo, own);
    assert_eq!(found.v1("cpuacct").map(|hierarchy| hierarchy.number), Some(3));
    assert_eq!(found.v1("blkio"), None);
}

#[test]
fn hybrid_with_v2_beside_v1() {
    let mountinfo = "\
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
    let own = "9:name=systemd:/\n7:blkio:/\n4:memory:/process_api/ce6f\n2:cpuacct:/\n0::/\n";
    let expected = [
        row(0, "", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified"),
        row(4, "memory", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/process_api/ce6f"),
        row(7, "blkio", "/sys/fs/cgroup/blkio", "/sys/fs/cgroup/blkio"),
    ];
    assert_eq!(seen(mountinfo, own), expected, "cpuacct is attached but mounted nowhere");
}

#[test]
fn docker_on_v1_binds_its_own_cgroup() {
    let mountinfo = "\
900 899 0:32 /docker/4f1c /sys/fs/cgroup/memory ro,nosuid master:13 - cgroup cgroup rw,memory
";
    let own = "11:memory:/docker/4f1c\n";
    let expected = [row(11, "memory", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory")];
    assert_eq!(seen(mountinfo, own), expected);
    let own = "11:memory:/docker/4f1c/inner\n";
    let expected = [row(11, "memory", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/inner")];
    assert_eq!(seen(mountinfo, own), expected);
    assert_eq!(seen(mountinfo, "11:memory:/docker/4f1c2\n"), [], "a prefix of whole names only");
}

#[test]
fn namespaced_docker_on_v2() {
    let mountinfo = "700 699 0:27 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n";
    assert_eq!(seen(mountinfo, "0::/\n"), [row(0, "", "/sys/fs/cgroup", "/sys/fs/cgroup")]);
    let outside = "700 699 0:27 /../.. /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
    assert_eq!(seen(outside, "0::/\n"), [], "the names above the namespace cannot be told");
    let moved_out = [row(0, "", "/sys/fs/cgroup", "/sys/fs/cgroup/b")];
    assert_eq!(seen(outside, "0::/../../b\n"), moved_out);
    assert_eq!(seen(mountinfo, "0::/../b\n"), [], "outside of what is mounted");
}

#[test]
fn of_several_mounts_the_most_useful_is_taken() {
    let mountinfo = "\
31 24 0:27 / /ro ro - cgroup2 cgroup2 rw
32 24 0:27 /a /part rw - cgroup2 cgroup2 rw
33 24 0:27 / /hidden rw - cgroup2 cgroup2 rw
34 24 0:99 / /hidden rw - tmpfs none rw
35 24 0:27 / /mnt/with\\040space rw - cgroup2 cgroup2 rw
";
    let expected = [row(0, "", "/mnt/with space", "/mnt/with space/a/b")];
    assert_eq!(seen(mountinfo, "0::/a/b\n"), expected);
}

#[test]
fn what_is_no_such_line_is_passed_over() {
    let mountinfo = "\n31\n31 24 0:27 / /x rw -\n31 24 0:27 / /x rw - cgroup2\n\0\n";
    assert_eq!(seen(mountinfo, "0::/\n"), []);
    // No root or no mount point: the directory would lie outside.
    for mountinfo in ["31 24 0:27  //cg rw - cgroup2 c rw\n", "31 24 0:27 / cg rw - cgroup2 c rw\n"]
    {
        assert_eq!(seen(mountinfo, "0::/a\n"), [], "{mountinfo}");
    }
    let good = "31 24 0:27 / /cg rw - cgroup2 cgroup2 rw\n";
    for own in ["", "0::", "0::relative", "x::/", "0:memory:/", "7::/", "99999999999::/", ":::"] {
        assert_eq!(seen(good, own), [], "{own}");
    }
    assert_eq!(seen(good, "0::/gone (deleted)\n"), [row(0, "", "/cg", "/cg/gone")]);
    assert_eq!(seen(good, "0::/a:b\n"), [row(0, "", "/cg", "/cg/a:b")]);
}
