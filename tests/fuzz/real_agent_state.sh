#!/bin/sh
# Makes the inputs `real` and `other-boot` of the corpus of agent_state: what an agent left that was killed while it
# had jobs. Run as root after a change of what the agent saves: tests/fuzz/real_agent_state.sh [JOBTRACE]
set -eu
here=$(dirname "$(readlink -f "$0")")
corpus=$here/corpus/agent_state
jobtrace=${1:-$here/../../target/debug/jobtrace}
folder=$(mktemp -d)
cgroups=$(findmnt -n -o TARGET -t cgroup2 | head -1)/jobtrace-fuzz
bpffs=/sys/fs/bpf
mountpoint -q $bpffs || { mount -t bpf bpf $bpffs; mounted=yes; }
agent=
clean_up() {
    if [ -n "$agent" ]; then
        kill -9 $agent 2>/dev/null || true
        wait $agent 2>/dev/null || true
    fi
    "$jobtrace" agent --unpin --config "$folder/agent.toml" 2>/dev/null || true
    rmdir "$cgroups"/job_* "$cgroups" 2>/dev/null || true
    [ -z "${mounted:-}" ] || umount $bpffs
    rm -r "$folder"
}
trap clean_up EXIT

# A job of $1 that forks, writes and leaves.
job() {
    mkdir "$cgroups/job_$1"
    sh -c "echo 0 > $cgroups/job_$1/cgroup.procs; /bin/true; /bin/true
        dd if=/dev/zero of=$folder/file bs=4k count=16 oflag=sync 2>/dev/null; sleep ${2:-0}"
    rmdir "$cgroups/job_$1" 2>/dev/null || true
}

mkdir "$cgroups"
cat > "$folder/agent.toml" <<END
interval = "1s"
hierarchy = "v2"
pin = true
spool.dir = "$folder/spool"
state.dir = "$folder/state"
records.dir = "$folder/records"
[[rule]]
name = "fz"
manager = "fz"
pattern = '/jobtrace-fuzz/job_(?<job>[0-9]+)'
END
"$jobtrace" agent --config "$folder/agent.toml" 2> "$folder/log" &
agent=$!
until grep -q "tracing the jobs" "$folder/log"; do sleep 0.1; done
job 1
mkdir "$cgroups/job_2"
sleep 2.2
# For the journal: after the last interval.
until [ -s "$(ls "$folder"/state/journal-* | tail -1)" ]; do job 31; done
kill -9 $agent
wait $agent 2>/dev/null || true
agent=
journal=$(ls "$folder"/state/journal-* | tail -1)
boot=$(cat /proc/sys/kernel/random/boot_id)
# The machine's own processes are no part of it, nor is its name.
sed "s/$boot/THIS-BOOT/; s/$(hostname)/node/g; s#$folder#/var/lib/jobtrace#g" "$folder/state/state.json" > "$corpus/real"
sed "s/THIS-BOOT/x/; s/\"journal\":[0-9]*/\"journal\":18446744073709551615/" "$corpus/real" | tr -d '\n' > "$corpus/other-boot"
{ printf '\n\n'; cat "$journal"; } >> "$corpus/real"
ls -l "$corpus/real" "$corpus/other-boot"
