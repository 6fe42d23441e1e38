#!/bin/sh
# boot.sh TARBALL FOLDER: the first process of a PID namespace unpacks a Debian into memory, makes that
# its root and becomes systemd. All mounts are of this namespace and vanish with it.
set -eu
mount --make-rprivate /
mount -t tmpfs -o mode=755 jobtrace "$2"
tar -C "$2" -xf "$1"
cd "$2"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t bpf bpf sys/fs/bpf
mount -t tracefs tracefs sys/kernel/tracing
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t cgroup2 none sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
mkdir -p dev/pts dev/shm
for name in null zero full random urandom tty; do
    : >dev/$name
    mount --bind /dev/$name dev/$name
done
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
: >etc/machine-id
echo node1 >etc/hostname
mkdir -p old
pivot_root . old
cd /
umount -l old
rmdir old
exec env -i container=jobtrace PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd \
    --log-target=console --show-status=0 --unit=basic.target
