"""Adds up what ten thousand small files hold that were packed into one (tar -cf samples.tar samples)."""

import sys
import tarfile

total = 0
with tarfile.open(sys.argv[1], "r|", bufsize=1 << 20) as archive:
    for member in archive:
        if member.isfile():
            total += len(archive.extractfile(member).read().split())

print(total)
