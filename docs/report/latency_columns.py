"""What a histogram of block latency for each column of a record's timeline would cost: the numbers of decision 0026.

    python3 docs/report/latency_columns.py docs/report/slow.json.gz

Draws for each of 240 columns as many requests as the record has on the mean, times 0.5 to 1.5, from the record's own
latencies, and counts them in 12 classes, each twice as wide as the one below it.
"""
import gzip
import json
import math
import random
import sys

COLUMNS, CLASSES = 240, 12
random.seed(1)
packed = open(sys.argv[1], "rb").read()
record = json.loads(gzip.decompress(packed))
buckets = {}
for device in record["block"]:
    for bound, count in device.get("device_latency_ns", {}).get("buckets", []):
        buckets[bound] = buckets.get(bound, 0) + count
lowest = math.floor(math.log2(min(buckets)))
bounds, counts = list(buckets), list(buckets.values())


def column(mean):
    """The counts of one column's classes."""
    classes = [0] * CLASSES
    for value in random.choices(bounds, counts, k=int(mean * random.uniform(0.5, 1.5))):
        classes[min(max(math.floor(math.log2(value)) - lowest, 0), CLASSES - 1)] += 1
    return classes


def bytes_of(rows, shown):
    """Bytes of the classes over time, as a timeline's series are written."""
    series = {f"block_latency_{at}": [shown(row[at]) for row in rows] for at in range(CLASSES)}
    return len(gzip.compress(json.dumps(series, separators=(",", ":")).encode(), 1))


print(f"the record: {len(packed)} bytes, {sum(counts)} requests")
for mean in (10, 100, 1000, 10000):
    rows = [column(mean) for _ in range(COLUMNS)]
    whole = bytes_of(rows, lambda count: count)
    coarse = bytes_of(rows, lambda count: count.bit_length())
    print(f"{mean} requests a column: {whole} bytes as counts, {coarse} bytes as powers of two")
