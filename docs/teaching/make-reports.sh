#!/bin/bash
# make-reports.sh [JOBTRACE [SCRIPT…]]: runs each script of this folder, or those of these names alone, under
# `jobtrace run`, and writes its report beside it. Root is needed, and python3, mkfs.ext4 and losetup. It takes about a
# minute and a half.
#
# The small files lie on a file system of their own, on a real disk and mounted afresh: none of it is in memory.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
jobtrace=$(readlink -f "$(command -v "${1:-jobtrace}")")
only=" ${*:2} "
work=${TEACHING_DIR:-/var/tmp/teaching}
mkdir "$work"
loop=
away() {
    cd /
    ! mountpoint -q "$work/disk" || umount "$work/disk"
    [ -z "$loop" ] || losetup -d "$loop"
    rm -rf "$work"
}
trap away EXIT
cp "$here"/*.py "$work"
cd "$work"

python3 - <<'PYTHON'
import random
random.seed(1)
with open("table.csv", "w") as file:
    file.write("step,x,y,z,energy\n")
    for step in range(7_000_000):
        file.write(f"{step},{step % 7},{step % 11},{step % 13},{random.random():.6f}\n")
PYTHON

truncate -s 512M image
mkfs.ext4 -q -N 20000 image
loop=$(losetup --find --show --direct-io=on image)
mkdir disk
mount "$loop" disk
python3 - <<'PYTHON'
import os
os.mkdir("disk/samples")
for sample in range(10_000):
    with open(f"disk/samples/{sample:05}", "w") as file:
        file.write("0.125 " * 200)
PYTHON
tar -C disk -cf disk/samples.tar samples
python3 make-index.py index

options=()
trace() { # name, command…
    local name=$1
    shift
    [[ $only == "  " || $only == *" $name "* ]] || return 0
    # On a busy machine the scripts come before all else, in turns: their reports are to be of them alone.
    chrt --rr 1 "$jobtrace" run --quiet "${options[@]}" --save "$work/records" --name "$name" -- "$@" >"$work/out"
    "$jobtrace" report "$name" --from "$work/records" >"$here/$name.txt"
    echo "$name: $(head -n 1 "$here/$name.txt")"
}
again() { umount disk; mount "$loop" disk; }

trace sum-column python3 sum-column.py table.csv
trace sum-column-mended python3 sum-column-mended.py table.csv
again
trace small-files python3 small-files.py disk/samples
again
trace small-files-mended python3 small-files-mended.py disk/samples.tar
trace one-core python3 one-core.py 15000000
trace one-core-mended python3 one-core-mended.py 15000000
trace straggler python3 straggler.py 2000000
trace straggler-mended python3 straggler-mended.py 2000000
trace each-line python3 each-line.py results 20000
trace each-line-mended python3 each-line-mended.py results 20000
# Taken apart by file.
options=(--io)
trace look-up python3 look-up.py index
trace look-up-mended python3 look-up-mended.py index
