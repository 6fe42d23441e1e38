#!/bin/sh
# Makes the recordings beside this script anew: what `cargo xtask simulate` tells of jobs is cut out of
# them. As root, with a jobtrace built from this tree, fio, gcc, awk and python3:
#   sudo JOBTRACE=target/release/jobtrace sh tests/cluster/recordings/record.sh
# Any machine will do; two CPUs are what `kinds.rs` takes one recording for. The tests hold for whatever
# they contain; commit all of them together.
set -eu
# A session of its own, ahead of whatever else runs here: the scheduler shares CPUs among sessions first.
if [ -z "${OWN_SESSION-}" ]; then
    OWN_SESSION=1 exec setsid --wait sh "$0"
fi
[ ! -e /proc/self/autogroup ] || echo -12 > "/proc/$$/autogroup"
here=$(cd "$(dirname "$0")" && pwd)
program=$(cd "$(dirname "$JOBTRACE")" && pwd)/$(basename "$JOBTRACE")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# 24 readings a second apart, as the agent takes them. What else ran here is left out, and so is the
# machine's name.
record() {
    name=$1
    shift
    "$program" run --quiet --faults major --name "$name" --record "$work/$name" -- timeout 24 "$@" || true
    sed -e '1s/"host":"[^"]*"/"host":"recorded"/' -e 's/"slots":{"0":.*,"1":\[/"slots":{"1":[/' "$name" |
        gzip -9n > "$here/$name.jobtrace.gz"
}

# Arithmetic on all CPUs that meets at a barrier every few hundred milliseconds, and neighbours that exchange
# what lies at their borders.
cat > exchange.py <<'END'
import os, socket, time
listener = socket.create_server(("127.0.0.1", 0))
if os.fork():
    peer = listener.accept()[0]
else:
    peer = socket.create_connection(listener.getsockname())
border = bytes(1 << 16)
while True:
    peer.sendall(border)
    left = len(border)
    while left > 0:
        left -= len(peer.recv(left))
    time.sleep(0.3)
END
cat > compute.sh <<'END'
python3 exchange.py &
while :; do
    ranks=
    for rank in 1 2; do
        awk 'BEGIN { for (i = 0; i < 2e6; i++) x += sqrt(i) }' &
        ranks="$ranks $!"
    done
    wait $ranks
done
END
record compute sh compute.sh

# Small random reads and writes past the page cache, with a pause in each tenth of a second.
record disk fio --name=disk --filename=data --size=64m --rw=randrw --rwmixread=70 --bs=16k --direct=1 \
    --ioengine=psync --numjobs=2 --thread --group_reporting --time_based --runtime=60 --output=/dev/null \
    --thinktime=20ms --thinktime_blocks=32

# A build: processes that come and go by the dozen.
cat > forks.sh <<'END'
i=0
while :; do
    i=$((i + 1))
    echo "int f$i(int a) { return a * $i; }" > "f$i.c"
    gcc -O1 -c "f$i.c" -o f.o &
    [ $((i % 2)) = 1 ] || wait
    rm -f "f$((i - 4)).c"
done
END
record forks sh forks.sh

# Memory that is taken and given back: first touches by the hundred thousand.
cat > memory.sh <<'END'
while :; do
    head -c 300000000 /dev/zero | tail -c 299999999 | md5sum
done
END
record memory sh memory.sh

# A notebook: asleep, now and then a second's work.
cat > idle.sh <<'END'
while :; do
    sleep 3.5
    awk 'BEGIN { for (i = 0; i < 3e6; i++) x += i }'
done
END
record idle sh idle.sh

# What a node does by itself: timers, small logs, a health check.
cat > daemons.sh <<'END'
(while :; do sleep 0.25; done) &
(while :; do sleep 1; date >> log; done) &
while :; do
    sleep 5
    ps ax > /dev/null
    dd if=/dev/zero of=state bs=4k count=4 conv=fsync status=none
done
END
record daemons sh daemons.sh
