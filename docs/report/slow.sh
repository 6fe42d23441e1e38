#!/bin/sh
# Makes docs/report/slow.json.gz anew, the record of a script that is slow for reasons that its report names. As root, in
# the directory of a jobtrace built from this tree:
#   sudo JOBTRACE=target/debug/jobtrace sh docs/report/slow.sh && cargo xtask screenshots
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d -p "$here")
trap 'rm -rf "$work"' EXIT
cat >"$work/analyse.py" <<'PYTHON'
import hashlib, os, random, time

# Prepare: a table in memory, on one core.
table = [random.random() for _ in range(3_000_000)]
for _ in range(4):
    table = sorted(table, key=lambda value: -value)
# Store each result at once: every line waits for the disk.
with open("results.csv", "w") as results:
    until = time.monotonic() + 25
    while time.monotonic() < until:
        line = hashlib.sha256(repr(random.random()).encode()).hexdigest()
        results.write(line + "\n")
        results.flush()
        os.fsync(results.fileno())
# Sum up.
until = time.monotonic() + 8
while time.monotonic() < until:
    sum(table)
PYTHON
# On a busy machine it comes before all else, in turns, as docs/teaching does: its report is to be of it alone.
(cd "$work" && chrt --rr 1 "$JOBTRACE" run --quiet --name analyse --save "$work/runs" -- python3 analyse.py)
cp "$work"/runs/*/*/*.json.gz "$here/slow.json.gz"
