"""Writes results, each of which is to survive a crash."""

import os
import sys

with open(sys.argv[1], "w") as log:
    for step in range(int(sys.argv[2])):
        log.write(f"{step} {step * step}\n")
        log.flush()
        os.fsync(log.fileno())
