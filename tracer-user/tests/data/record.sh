#!/bin/sh
# Makes the recordings beside this script anew, in the directory of a jobtrace built from this tree:
#   sudo JOBTRACE=target/debug/jobtrace sh tracer-user/tests/data/record.sh
# The tests hold for whatever they contain; commit all three together.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

record() {
    name=$1
    shift
    "$JOBTRACE" run --quiet --record "$here/$name.jobtrace.gz" "$@" || true
}

# Processes come and go; a status of its own.
record forks --name 'a "quoted" name' --interval 100ms -- \
    sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; sleep 0.03; done; exit 3'
# Reads and writes that reach the disk, in the middle of the run.
record disk --cluster testbed --interval 100ms -- \
    sh -c "sleep 0.2; dd if=/dev/zero of=$work/x bs=256k count=16 oflag=direct 2>&-; sleep 0.2"
# Busy throughout, ended by a signal.
record killed --interval 250ms --faults major -- \
    sh -c '(sleep 1.1; kill -TERM $$) & while :; do :; done'
