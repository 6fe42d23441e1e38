"""Counts the samples that each of many words is in, by an index of 64 files of which each is read once."""

import functools
import os
import sys
import zlib

folder = sys.argv[1]


@functools.cache
def part(number):
    with open(os.path.join(folder, f"part-{number:02}"), "rb") as file:
        lines = (line.split() for line in file)
        return {word: int(count) for word, count in filter(None, lines)}


total = 0
for number in range(100_000):
    word = b"word-%05d" % (number * 7 % 5_000)
    total += part(zlib.crc32(word) % 64)[word]

print(total)
