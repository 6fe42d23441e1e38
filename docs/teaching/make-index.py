"""Makes the index that look-up.py reads: 400,000 words in the 64 files of a new folder."""

import os
import sys
import zlib

folder = sys.argv[1]
os.mkdir(folder)
parts = [[] for _ in range(64)]
for word in range(400_000):
    name = f"word-{word:05}"
    parts[zlib.crc32(name.encode()) % 64].append(f"{name} {word % 97 + 1:08}\n")
for number, lines in enumerate(parts):
    with open(os.path.join(folder, f"part-{number:02}"), "w") as file:
        file.write("\n" + "".join(lines))
